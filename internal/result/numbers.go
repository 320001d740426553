package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
)

// CheckNumbers refuses JSON of a value of the type of target that has null in the place of a number, or lacks a number that Encode always
// writes. encoding/json reads both as 0, and a 0 is a measurement. It expects JSON that encoding/json reads into this type.
func CheckNumbers(data []byte, target any) error {
	return checkNumbers("", data, reflect.TypeOf(target), true)
}

// checkNumbers is CheckNumbers for a type. Without isWhole, the keys of the outer object may be missing.
func checkNumbers(path string, data []byte, typ reflect.Type, isWhole bool) error {
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	t := numbersOf(typ)
	if t == nil || !t.strict && !bytes.Contains(data, []byte("null")) {
		return nil
	}
	found := reflect.New(t.shadow)
	if err := json.Unmarshal(data, found.Interface()); err != nil {
		return fmt.Errorf("check the numbers of %s: %w", orDocument(path), err)
	}
	return t.check(path, found.Elem(), isWhole)
}

// number is the state of a number in JSON.
type number int

const (
	missing number = iota
	null
	given
)

// UnmarshalJSON implements json.Unmarshaler. encoding/json also calls it for null, unlike for a pointer.
func (n *number) UnmarshalJSON(text []byte) error {
	*n = given
	if string(text) == "null" {
		*n = null
	}
	return nil
}

var numberType = reflect.TypeFor[number]()

// numbers are the numbers in the JSON of a type. It is nil for a type without numbers.
type numbers struct {
	// shadow is the type with only its numbers, each of them a number. A struct in a struct is a pointer, which is nil without the key.
	shadow reflect.Type
	// strict is set if some number must not be missing.
	strict bool
	// fields are the numbers in a struct, and element has the numbers in an element of a list or a map.
	fields  []numberField
	element *numbers
}

type numberField struct {
	*numbers
	name   string
	always bool
}

// known are the numbers by type.
var known sync.Map

func numbersOf(typ reflect.Type) *numbers {
	if t, ok := known.Load(typ); ok {
		return t.(*numbers)
	}
	t := inspect(typ)
	known.Store(typ, t)
	return t
}

func inspect(typ reflect.Type) *numbers {
	switch typ.Kind() {
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64,
		reflect.Float32, reflect.Float64:
		return &numbers{shadow: numberType, strict: true}
	case reflect.Pointer:
		return inspect(typ.Elem())
	case reflect.Slice, reflect.Array:
		if t := inspect(typ.Elem()); t != nil {
			return &numbers{shadow: reflect.SliceOf(t.shadow), strict: t.strict, element: t}
		}
	case reflect.Map:
		if t := inspect(typ.Elem()); t != nil {
			return &numbers{shadow: reflect.MapOf(reflect.TypeFor[string](), t.shadow), strict: t.strict, element: t}
		}
	case reflect.Struct:
		if reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]()) {
			return nil // such as a time
		}
		return inspectStruct(typ)
	default:
	}
	return nil
}

func inspectStruct(typ reflect.Type) *numbers {
	t := &numbers{}
	var fields []reflect.StructField
	for _, f := range reflect.VisibleFields(typ) {
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && tag == "" || !f.IsExported() || tag == "-" {
			continue
		}
		inner := inspect(f.Type)
		if inner == nil {
			continue
		}
		if tag == "" {
			tag = f.Name
		}
		requirement := f.Type.Kind() != reflect.Pointer && !strings.Contains(options, "omit")
		t.fields = append(t.fields, numberField{inner, tag, requirement})
		t.strict = t.strict || inner.strict && (requirement || inner.shadow != numberType)
		shadow := inner.shadow
		if shadow.Kind() == reflect.Struct {
			shadow = reflect.PointerTo(shadow)
		}
		fields = append(fields, reflect.StructField{Name: f.Name, Type: shadow, Tag: reflect.StructTag(fmt.Sprintf("json:%q", tag))})
	}
	if len(fields) == 0 {
		return nil
	}
	t.shadow = reflect.StructOf(fields)
	return t
}

var (
	errNullNumber = errors.New("is null in the place of a number")
	errNoNumber   = errors.New("is missing, and is a number")
)

// check looks at the shadow of a value. Without isWhole, its own fields may be missing.
func (t *numbers) check(path string, value reflect.Value, isWhole bool) error {
	switch {
	case t.shadow == numberType:
		switch number(value.Int()) {
		case null:
			return fmt.Errorf("%s %w", orDocument(path), errNullNumber)
		case missing:
			if isWhole {
				return fmt.Errorf("%s %w", orDocument(path), errNoNumber)
			}
		case given:
		}
	case t.shadow.Kind() == reflect.Slice:
		for i := range value.Len() {
			if err := t.element.check(fmt.Sprintf("%s[%d]", path, i), value.Index(i), true); err != nil {
				return err
			}
		}
	case t.shadow.Kind() == reflect.Map:
		for key, v := range value.Seq2() {
			if err := t.element.check(join(path, fmt.Sprintf("%.50q", key.String())), v, true); err != nil {
				return err
			}
		}
	default:
		return t.checkFields(path, value, isWhole)
	}
	return nil
}

func (t *numbers) checkFields(path string, value reflect.Value, isWhole bool) error {
	for i, f := range t.fields {
		field, inner := value.Field(i), isWhole && f.always
		if field.Kind() == reflect.Pointer {
			if field.IsNil() && (!inner || !f.strict) {
				continue
			}
			if field.IsNil() {
				field = reflect.Zero(f.shadow)
			} else {
				field = field.Elem()
			}
			inner = true
		}
		if err := f.check(join(path, f.name), field, inner); err != nil {
			return err
		}
	}
	return nil
}

// checkKeys refuses an object of a type without a key whose value always has a number.
func checkKeys(path string, typ reflect.Type, has func(key string) bool) error {
	t := numbersOf(typ)
	if t == nil {
		return nil
	}
	for _, f := range t.fields {
		if f.always && f.strict && f.element == nil && !has(f.name) {
			return fmt.Errorf("%s %w", join(path, f.name), errNoNumber)
		}
	}
	return nil
}
