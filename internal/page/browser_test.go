package page_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/stretchr/testify/require"
)

// browsers are the names under which a browser that can be driven is installed.
var browsers = []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "headless-shell"}

// browser is a real one without a window.
type browser struct {
	t        *testing.T
	ctx      context.Context //nolint:containedctx // it is what chromedp drives a browser by
	w        *world
	mu       sync.Mutex
	problems []string // guarded by mu
}

// browserTime bounds one story in a browser.
const browserTime = 2 * time.Minute

func (w *world) browse() *browser {
	w.t.Helper()
	found := ""
	for _, name := range browsers {
		if path, err := exec.LookPath(name); err == nil {
			found = path
			break
		}
	}
	if found == "" {
		w.t.Skip("no browser is installed; on Debian: apt-get install -y chromium")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(found), chromedp.NoSandbox, chromedp.WindowSize(1360, 900))
	ctx, cancel := chromedp.NewExecAllocator(context.Background(), options...)
	w.t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	w.t.Cleanup(cancel)
	ctx, cancel = context.WithTimeout(ctx, browserTime)
	w.t.Cleanup(cancel)
	b := &browser{t: w.t, ctx: ctx, w: w}
	defer func() { b.open(w.key()) }()
	// What the page must never do: run a script, ask a question, break its own policy, load what is not there.
	require.NoError(w.t, chromedp.Listen(ctx, b.notice))
	_, err := chromedp.Call(ctx, log.Enable, cdp.Empty{})
	require.NoError(w.t, err)
	return b
}

// notice is called on the goroutine that reads from the browser.
func (b *browser) notice(e any) {
	b.mu.Lock()
	defer b.mu.Unlock()
	switch e := e.(type) {
	case *page.EventJavascriptDialogOpening:
		b.problems = append(b.problems, "dialog: "+e.Message)
	case *runtime.EventExceptionThrown:
		b.problems = append(b.problems, "script: "+e.ExceptionDetails.Text)
	case *log.EventEntryAdded:
		b.problems = append(b.problems, string(e.Entry.Source)+": "+e.Entry.Text)
	}
}

func (b *browser) run(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	require.NoError(b.t, chromedp.Do(b.ctx, actions...))
}

func (b *browser) open(path string) { b.run(chromedp.Navigate(b.w.site.URL + path)) }

// text returns what a person reads in an element.
func (b *browser) text(selector string) string {
	b.t.Helper()
	return ask(b, chromedp.Text(chromedp.CSS(selector)))
}

// ask runs an action that has an answer.
func ask[T any](b *browser, a chromedp.Action[T]) T {
	b.t.Helper()
	v, err := chromedp.Run(b.ctx, a)
	require.NoError(b.t, err)
	return v
}

// follow clicks a link or button and waits for the page behind it.
func (b *browser) follow(selector string) {
	b.t.Helper()
	_, err := chromedp.RunResponse(b.ctx, chromedp.Click(chromedp.CSS(selector)))
	require.NoError(b.t, err)
}

// shoot takes a picture of the whole page into the directory that the environment names, for people to look at.
func (b *browser) shoot(name string) {
	b.t.Helper()
	dir := os.Getenv("SCREENSHOTS")
	if dir == "" {
		return
	}
	png := ask(b, chromedp.FullScreenshot(100))
	require.NoError(b.t, os.MkdirAll(dir, 0o755))
	require.NoError(b.t, os.WriteFile(filepath.Join(dir, name+".png"), png, 0o644))
}

// fine holds that the page did nothing that it must not.
func (b *browser) fine() {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	require.Empty(b.t, b.problems)
}

func TestInABrowserADeadLetterIsFoundOpenedAndReprocessed(t *testing.T) {
	w := start(t, nil)
	w.story()
	b := w.browse()
	b.open("/")
	b.shoot("list")
	require.Contains(t, b.text("main"), "Dead-lettered messages")
	b.follow(`a[href="/?verdict=never-applied"]`)
	require.Equal(t, "Dead-lettered messages: never-applied", b.text("h1"))
	b.follow(`tbody a[href="/messages/2"]`)
	b.shoot("never-applied")
	require.Contains(t, b.text("h1"), "Dead-lettered message 2")
	require.Contains(t, b.text("main"), "This message was not applied")
	require.Contains(t, b.text(`pre[aria-label="Body of the message"]`), `"name": "Grace"`)
	b.run(chromedp.SendKeys(chromedp.CSS("#why-reprocess"), "ticket 7"))
	b.follow(`form[action="/messages/2/reprocess"] button`)
	b.shoot("outcome")
	require.Contains(t, b.text(`[role="status"]`), "Done. The message is removed from the dead letters.")
	require.Equal(t, 4, w.dead())
	require.Equal(t, 1, w.mem.Creations("1003"))
	b.run(chromedp.Reload())
	require.Equal(t, 1, w.mem.Creations("1003"), "loading the outcome again does nothing")
	b.follow(`a[rel="next"]`)
	require.Contains(t, b.text("h1"), "Dead-lettered message 3")
	b.follow(`nav a[href="/history"]`)
	b.shoot("history")
	require.Contains(t, b.text("main"), "ticket 7")
	b.fine()
}

func TestInABrowserAConflictIsComparedAndWhatIsStoredIsKept(t *testing.T) {
	w := start(t, nil)
	w.story()
	b := w.browse()
	b.open("/messages/4")
	b.shoot("conflict")
	differences := b.text(`section[aria-labelledby="differences"]`)
	for _, want := range []string{"/amount", "40", "55", "/customer/city", "Bern", "Chur", "/express", "/note"} {
		require.Contains(t, differences, want)
	}
	require.Contains(t, b.text(`pre[aria-label="Stored document"]`), "by noon")
	b.run(chromedp.SendKeys(chromedp.CSS("#why-discard"), "ticket 8"))
	b.run(chromedp.Click(chromedp.CSS(`form[action="/messages/4/discard"] button`)))
	require.Equal(t, 5, w.dead(), "the warning was not acknowledged, so the browser did not send the form")
	b.run(chromedp.Click(chromedp.CSS(`form[action="/messages/4/discard"] input[name="acknowledged"]`)))
	b.follow(`form[action="/messages/4/discard"] button`)
	require.Contains(t, b.text(`[role="status"]`), "Done")
	require.Equal(t, 4, w.dead())
	require.Equal(t, 1, w.mem.Creations("1002"))
	b.fine()
}

func TestInABrowserHostileContentIsOnlyText(t *testing.T) {
	w := start(t, nil)
	w.story()
	b := w.browse()
	for _, path := range []string{"/", "/messages/5", "/?reason=NotJSON"} {
		b.open(path)
		require.NotContains(t, ask(b, chromedp.Title()), "owned")
		require.Zero(t, ask(b, chromedp.Evaluate[int](`document.querySelectorAll("script:not([src='/assets/page.js']), iframe, svg, main img, [onerror], [onload]").length`)), path)
	}
	b.open("/messages/5")
	b.shoot("hostile")
	require.Contains(t, b.text("main"), "<script>document.title='owned'</script>")
	require.Contains(t, b.text("main"), `\u202e`)
	b.fine()
}

func TestInABrowserManyArePlannedAndApplied(t *testing.T) {
	w := start(t, nil)
	w.story()
	b := w.browse()
	b.open("/")
	b.run(chromedp.SetValue(chromedp.CSS("#scope"), "all"))
	b.follow(`form[action="/plans"] button`)
	b.run(chromedp.WaitVisible(chromedp.CSS("#why")))
	b.shoot("plan")
	b.run(chromedp.SendKeys(chromedp.CSS("#why"), "ticket 9"), chromedp.Click(chromedp.CSS(`input[name="confirm"]`)))
	b.run(chromedp.SetValue(chromedp.CSS("#rate"), "2"))
	b.follow(`section[aria-labelledby="apply"] button`)
	b.shoot("applying")
	b.run(chromedp.WaitNotPresent(chromedp.CSS(`form[action$="/stop"]`)))
	b.shoot("applied")
	require.Contains(t, b.text("h1"), "done")
	require.Equal(t, 2, w.dead())
	b.fine()
}

func TestInABrowserEverythingIsReachedByTheKeyboard(t *testing.T) {
	w := start(t, nil)
	w.story()
	b := w.browse()
	b.open("/messages/1")
	b.run(chromedp.KeyEvent(kb.Tab))
	require.Equal(t, "Skip to the content", b.focused())
	reached := map[string]bool{}
	for range 40 {
		b.run(chromedp.KeyEvent(kb.Tab))
		reached[b.focused()] = true
	}
	for _, want := range []string{"Messages", "History", "Next message", "Discard as duplicate", "Export"} {
		require.True(t, reached[want], "%q is not reached; reached is %v", want, reached)
	}
	b.run(chromedp.Focus(chromedp.CSS("#why-discard")), chromedp.KeyEvent("ticket 10"))
	_, err := chromedp.RunResponse(b.ctx, chromedp.KeyEvent(kb.Enter))
	require.NoError(t, err)
	require.Contains(t, b.text(`[role="status"]`), "Done")
	require.Equal(t, 4, w.dead())
	b.fine()
}

// focused names what has the focus.
func (b *browser) focused() string {
	b.t.Helper()
	s := ask(b, chromedp.Evaluate[string](`(e => e.innerText || e.getAttribute("aria-label") || e.name || "")(document.activeElement)`))
	return strings.TrimSpace(s)
}

// TestInABrowserEveryPageHasNamesForThoseWhoDoNotSee asks the browser what it tells a screen reader.
func TestInABrowserEveryPageHasNamesForThoseWhoDoNotSee(t *testing.T) {
	w := start(t, nil)
	w.story()
	b := w.browse()
	for _, path := range []string{"/", "/messages/1", "/messages/2", "/messages/4", "/history"} {
		b.open(path)
		faults := ask(b, chromedp.Evaluate[[]string](`[
			...[...document.querySelectorAll("input:not([type=hidden]), select")].filter(e => !e.labels.length && !e.ariaLabel).map(e => "no label: " + e.name),
			...[...document.querySelectorAll("button, a")].filter(e => !e.textContent.trim()).map(e => "no text: " + e.outerHTML),
			...[...document.querySelectorAll("[id]")].filter(e => document.querySelectorAll("#" + CSS.escape(e.id)).length > 1).map(e => "id twice: " + e.id),
			...[...document.querySelectorAll("[aria-labelledby], [aria-describedby]")].flatMap(e => [e.getAttribute("aria-labelledby"), e.getAttribute("aria-describedby")]).filter(id => id && !document.getElementById(id)).map(id => "no such id: " + id),
			...(document.querySelectorAll("h1").length === 1 ? [] : ["not one h1"]),
			...(document.documentElement.lang ? [] : ["no language"]),
			...[...document.querySelectorAll("th")].filter(e => !e.scope).map(e => "no scope: " + e.textContent),
		]`))
		require.Empty(t, faults, path)
	}
	b.fine()
}

func TestInABrowserItIsReadableInTheDarkAndOnASmallScreen(t *testing.T) {
	w := start(t, nil)
	w.story()
	w.tale()
	b := w.browse()
	paths := []string{"/", "/?verdict=never-applied&reason=MaxDeliveryCountExceeded&age=%3C1h&text=1", "/?key=1002", "/messages/1", "/messages/2", "/messages/4", "/messages/5", "/messages/6", "/messages/7", "/history", "/?verdict=undecided", w.aPlan()}
	for _, size := range []int64{1360, 390} {
		b.run(chromedp.EmulateViewport(size, 844))
		for _, scheme := range []string{"dark", "light"} {
			b.media(scheme)
			for i, path := range paths {
				b.open(path)
				b.run(chromedp.Evaluate[chromedp.Void](`document.querySelectorAll("details").forEach(d => { d.open = true; })`))
				b.contrast()
				require.Empty(t, b.cut(), "%s is cut at %d", path, size)
				b.shoot(fmt.Sprintf("%d-%s-%02d", size, scheme, i))
			}
		}
	}
	b.fine()
}

// cut names what is wider than its place, so that a person would have to scroll sideways or would not see all of it.
func (b *browser) cut() []string {
	b.t.Helper()
	return ask(b, chromedp.Evaluate[[]string](`[...document.querySelectorAll("html, main, section, aside, form, table, tr, td, th, ul, ol, pre, dl, dd, p")]
		.filter(e => e.getClientRects().length && !e.closest(".vh, .skip"))
		.filter(e => e.scrollWidth > Math.max(e.clientWidth, e.getBoundingClientRect().width) + 1 || e.getBoundingClientRect().right > document.documentElement.clientWidth + 1)
		.map(e => e.tagName + "." + e.className + " " + e.scrollWidth + ">" + e.clientWidth + " " + e.textContent.trim().slice(0, 40))`))
}

func TestInABrowserAPhoneShowsAMessageBeforeTheGroupsAndFewLinksBeforeIt(t *testing.T) {
	w := start(t, nil)
	w.story()
	b := w.browse()
	for _, size := range []int64{1360, 390} {
		b.run(chromedp.EmulateViewport(size, 844))
		b.open("/")
		above := ask(b, chromedp.Evaluate[int](`[...document.querySelectorAll("a[href]")].findIndex(e => e.pathname.startsWith("/messages/"))`))
		require.Less(t, above, 5, "links before the first message")
	}
	require.True(t, ask(b, chromedp.Evaluate[bool](`document.querySelector("tbody tr").getBoundingClientRect().bottom < 844`)), "the first message is on the first screen")
	require.True(t, ask(b, chromedp.Evaluate[bool](`document.querySelector("tbody tr").getBoundingClientRect().top < document.querySelector("#overview").getBoundingClientRect().top`)))
	b.fine()
}

func TestInABrowserTheCountsAreNewWithoutLoadingThePage(t *testing.T) {
	w := start(t, nil)
	w.story()
	b := w.browse()
	b.open("/")
	b.run(chromedp.Evaluate[chromedp.Void](`window.loaded = true; document.getElementById("text").value = "typed"`))
	w.bury("Late", message("late", `{"n":1}`, nil))
	b.run(chromedp.WaitVisible(chromedp.CSS(`#overview a[href="/?reason=Late"]`)))
	require.Contains(t, b.text("#overview"), "There were 5 when this list was loaded")
	require.True(t, ask(b, chromedp.Evaluate[bool](`window.loaded && document.getElementById("text").value === "typed"`)), "the page itself stays")
	b.fine()
}

func TestInABrowserMessagesAreTickedPlannedAndDiscardedByTheKeyboard(t *testing.T) {
	w := start(t, nil)
	w.story()
	b := w.browse()
	b.open("/")
	b.run(chromedp.Click(chromedp.CSS("#all")))
	require.Equal(t, 5, ask(b, chromedp.Evaluate[int](`document.querySelectorAll("[name=sequence]:checked").length`)))
	b.run(chromedp.Click(chromedp.CSS("#all")))
	b.run(chromedp.Focus(chromedp.CSS(`[name=sequence][value="3"]`)), chromedp.KeyEvent(" "))
	b.run(chromedp.Focus(chromedp.CSS("#action")), chromedp.KeyEvent("dis"))
	b.run(chromedp.Focus(chromedp.CSS(`#plan [name=acknowledged]`)), chromedp.KeyEvent(" "), chromedp.KeyEvent(kb.Tab))
	require.Equal(t, "Make a plan", b.focused())
	_, err := chromedp.RunResponse(b.ctx, chromedp.KeyEvent(kb.Enter))
	require.NoError(t, err)
	b.run(chromedp.WaitVisible(chromedp.CSS("#why")))
	require.Contains(t, b.text("main"), "1 dead-lettered message that was selected")
	b.run(chromedp.SendKeys(chromedp.CSS("#why"), "ticket 11"), chromedp.Focus(chromedp.CSS(`[name=confirm]`)), chromedp.KeyEvent(" "), chromedp.KeyEvent(kb.Tab))
	_, err = chromedp.RunResponse(b.ctx, chromedp.KeyEvent(kb.Enter))
	require.NoError(t, err)
	b.run(chromedp.WaitNotPresent(chromedp.CSS("#stop")))
	require.Contains(t, b.text("h1"), "done")
	require.Equal(t, 4, w.dead())
	b.fine()
}

// media makes the browser prefer a colour scheme.
func (b *browser) media(scheme string) {
	b.t.Helper()
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
	})
	require.NoError(b.t, err)
}

// contrast holds every visible text against the contrast that WCAG AA wants of small text.
func (b *browser) contrast() {
	b.t.Helper()
	faults := ask(b, chromedp.Evaluate[[]string](`(() => {
		const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
		const rgba = color => { canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1); return [...canvas.getImageData(0, 0, 1, 1).data]; };
		const light = ([r, g, b]) => [r, g, b].map(v => v / 255).map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4).reduce((sum, v, i) => sum + v * [.2126, .7152, .0722][i], 0);
		const ground = e => { for (; e; e = e.parentElement) { const c = rgba(getComputedStyle(e).backgroundColor); if (c[3] === 255) return c; } return [255, 255, 255, 255]; };
		const out = [];
		const shown = e => e.tagName !== "OPTION" && e.getClientRects().length && !e.closest(".vh");
		const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
		while (walker.nextNode()) {
			const e = walker.currentNode.parentElement;
			if (!walker.currentNode.textContent.trim() || !shown(e)) continue;
			const [a, b] = [light(rgba(getComputedStyle(e).color)), light(ground(e))];
			const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
			if (ratio < 4.5) out.push(ratio.toFixed(2) + " " + e.tagName + " " + walker.currentNode.textContent.trim().slice(0, 40));
		}
		for (const e of document.querySelectorAll("input, select")) {
			const [a, b, c] = [light(rgba(getComputedStyle(e).color)), light(ground(e)), light(rgba(getComputedStyle(e, "::placeholder").color))];
			for (const text of [a, c]) {
				const ratio = (Math.max(text, b) + .05) / (Math.min(text, b) + .05);
				if (e.getClientRects().length && e.type !== "checkbox" && ratio < 4.5) out.push(ratio.toFixed(2) + " " + e.name);
			}
		}
		return out;
	})()`))
	require.Empty(b.t, faults)
}
