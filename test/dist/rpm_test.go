package dist

import (
	"bytes"
	"encoding/binary"
	"fmt"
)

// The tags of an RPM header that the tests read.
const (
	rpmName      = 1000
	rpmVersion   = 1001
	rpmBuildTime = 1006
	rpmBuildHost = 1007
	rpmArch      = 1022
	rpmBaseNames = 1117
)

// rpmHeader returns the strings and the 32-bit numbers in the main header of a package, by their tags. The file format is version 3:
// a lead, the header with the signature, padding to 8 bytes, the main header.
func rpmHeader(file []byte) (map[uint32][]string, error) {
	const lead = 96
	if !bytes.HasPrefix(file, []byte("\xed\xab\xee\xdb\x03")) || len(file) < lead {
		return nil, fmt.Errorf("the file has no lead of an RPM package")
	}
	_, size, err := readHeader(file[lead:])
	if err != nil {
		return nil, fmt.Errorf("the header of the signature: %w", err)
	}
	values, _, err := readHeader(file[lead+(size+7)/8*8:])
	return values, err
}

// readHeader returns the values of a header, and its size.
func readHeader(data []byte) (map[uint32][]string, int, error) {
	const intro, entrySize = 16, 16
	if !bytes.HasPrefix(data, []byte("\x8e\xad\xe8\x01")) || len(data) < intro {
		return nil, 0, fmt.Errorf("no header begins here")
	}
	entries, size := int(binary.BigEndian.Uint32(data[8:])), int(binary.BigEndian.Uint32(data[12:]))
	begin := intro + entries*entrySize
	if begin+size > len(data) {
		return nil, 0, fmt.Errorf("the header is cut off")
	}
	values := map[uint32][]string{}
	for n := range entries {
		entry := data[intro+n*entrySize:]
		tag, kind := binary.BigEndian.Uint32(entry), binary.BigEndian.Uint32(entry[4:])
		rest := data[begin+int(binary.BigEndian.Uint32(entry[8:])) : begin+size]
		for range binary.BigEndian.Uint32(entry[12:]) {
			switch kind {
			case 4:
				values[tag] = append(values[tag], fmt.Sprint(binary.BigEndian.Uint32(rest)))
				rest = rest[4:]
			case 6, 8, 9:
				text, remainder, _ := bytes.Cut(rest, []byte{0})
				values[tag] = append(values[tag], string(text))
				rest = remainder
			}
		}
	}
	return values, begin + size, nil
}
