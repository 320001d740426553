package web_test

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/touchstone-bench/touchstone/internal/must"
	"github.com/touchstone-bench/touchstone/internal/report/reporttest"
	"github.com/touchstone-bench/touchstone/test/record"
)

// browserLimit is the limit against a browser that hangs.
const browserLimit = 3 * time.Minute

// chromium is the path of Chromium. Without it the test is skipped, unless tests must run.
func chromium(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("it needs a browser")
	}
	program, err := exec.LookPath("chromium")
	if err != nil {
		if os.Getenv("TOUCHSTONE_MUST_RUN") != "" {
			t.Fatalf("the test needs Chromium: %v", err)
		}
		record.Skip(t, "it needs Chromium")
	}
	return program
}

// browser starts Chromium. Each message of a page in its console is an error of the test.
func browser(t *testing.T, program string) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), browserLimit)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx, chromedp.WithAllocatorOptions(chromedp.ExecPath(program), chromedp.NoSandbox, chromedp.WindowSize(1200, 800)))
	messages := chromedp.Console(ctx)
	texts := make(chan []string)
	go func() {
		var list []string
		for m, err := range messages {
			if err != nil {
				break
			}
			list = append(list, m.Text)
		}
		texts <- list
	}()
	t.Cleanup(func() {
		cancel()
		if list := <-texts; len(list) > 0 {
			t.Errorf("the console has messages:\n%s", strings.Join(list, "\n"))
		}
	})
	return ctx
}

// read returns the address and the text of the page.
func read(t *testing.T, ctx context.Context) (address, text string) {
	t.Helper()
	address, err := chromedp.Run(ctx, chromedp.Location())
	must.Do(t, err)
	text, err = chromedp.Run(ctx, chromedp.Text(chromedp.CSS("main")))
	must.Do(t, err)
	return address, text
}

// follow runs the steps that lead to another page, and waits for it.
func follow(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	response, err := chromedp.RunResponse(ctx, steps...)
	must.Do(t, err)
	if response.Status != http.StatusOK {
		t.Errorf("%s: status %d", response.URL, response.Status)
	}
}

// A reader finds runs, ticks two sides and compares them, and follows the links, with no script of the pages.
func TestBrowserCompares(t *testing.T) {
	program := chromium(t)
	p := serve(t, stored(t, reporttest.Days(nil)...), nil)
	ctx := browser(t, program)
	follow(t, ctx, chromedp.Navigate(p.URL+"/"))
	for _, box := range []string{"a3", "a2", "a1", "a0", "b8", "b7", "b6", "b5"} {
		must.Do(t, chromedp.Do(ctx, chromedp.Click(chromedp.CSS(`input[name="`+box[:1]+`"][value="run`+box[1:]+`"]`))))
	}
	follow(t, ctx, chromedp.Click(chromedp.CSS(`form[action="/compare"] button`)))
	address, text := read(t, ctx)
	for _, word := range []string{"slower", "20.0", "22.0"} {
		if !strings.Contains(text, word) {
			t.Errorf("%s lacks %q:\n%s", address, word, text)
		}
	}
	if want := "/compare?b=run8&b=run7&b=run6&b=run5&a=run3&a=run2&a=run1&a=run0"; !strings.HasSuffix(address, want) {
		t.Errorf("the form leads to %s, want %s", address, want)
	}
	follow(t, ctx, chromedp.Click(chromedp.CSS(`nav a[href="/"]`)))
	follow(t, ctx, chromedp.SetValue(chromedp.CSS(`input[name="q"]`), "run7"), chromedp.Click(chromedp.CSS(".filters button")))
	if address, text = read(t, ctx); !strings.Contains(text, "1 to 1 of 1 runs") {
		t.Errorf("%s has\n%s", address, text)
	}
	follow(t, ctx, chromedp.Click(chromedp.CSS(`a[href="/run/run7"]`)))
	if address, text = read(t, ctx); !strings.Contains(text, "run7, 2026-11-27 10:00 UTC") {
		t.Errorf("%s has\n%s", address, text)
	}
}

// The page of a run under way becomes its report by itself. No page is wider than a telephone.
func TestBrowserFollowsRun(t *testing.T) {
	program := chromium(t)
	path, finish := startRun(t)
	p := serve(t, path, nil)
	ctx := browser(t, program)
	must.Do(t, chromedp.Do(ctx, chromedp.EmulateViewport(400, 800)))
	follow(t, ctx, chromedp.Navigate(p.URL+"/run/latest"))
	if address, text := read(t, ctx); !strings.Contains(text, "6 of 8 trials") {
		t.Errorf("%s has\n%s", address, text)
	}
	finish()
	must.Do(t, chromedp.Do(ctx, chromedp.WaitVisible(chromedp.CSS("#findings"))))
	for _, address := range []string{"/", "/run/latest", "/run/latest?format=html", "/run/latest?format=table", "/history", "/machines", "/baselines"} {
		follow(t, ctx, chromedp.Navigate(p.URL+address))
		width, err := chromedp.Run(ctx, chromedp.Evaluate[int]("document.documentElement.scrollWidth"))
		must.Do(t, err)
		if width > 400 {
			t.Errorf("%s is %d pixels wide", address, width)
		}
	}
}
