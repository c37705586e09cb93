package orderworker_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var (
	fences   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	codeSpan = regexp.MustCompile("`[^`\n]*`")
	links    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headings = regexp.MustCompile(`(?m)^#+ (.+)$`)
	notSlug  = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestNoLinkIsDead follows each link of every page to its file and its heading. Links to other sites are not followed.
func TestNoLinkIsDead(t *testing.T) {
	t.Parallel()
	found := 0
	require.NoError(t, filepath.WalkDir(".", func(page string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == ".git" || d.Name() == "dist" || d.Name() == "bin") {
			return orSkip(err)
		}
		if filepath.Ext(page) != ".md" {
			return nil
		}
		for _, target := range linksOf(t, page) {
			found++
			require.Empty(t, deadLink(t, page, target), "%s links to %s", page, target)
		}
		return nil
	}))
	require.Greater(t, found, 40)
}

func TestADeadLinkIsFound(t *testing.T) {
	t.Parallel()
	for target, fault := range map[string]string{
		"docs/releases.md": "", "docs/releases.md#stored-formats": "", "https://example.com/none": "", "docs": "",
		"docs/none.md": "no such file", "docs/releases.md#none": "no such heading",
	} {
		require.Equal(t, fault, deadLink(t, "README.md", target), target)
	}
}

func orSkip(err error) error {
	if err != nil {
		return err
	}
	return filepath.SkipDir
}

func linksOf(t *testing.T, page string) (targets []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	require.NoError(t, err)
	prose := codeSpan.ReplaceAllString(fences.ReplaceAllString(string(text), ""), "")
	for _, m := range links.FindAllStringSubmatch(prose, -1) {
		targets = append(targets, m[1])
	}
	return targets
}

// deadLink says what is wrong with a link of a page, or "".
func deadLink(t *testing.T, page, target string) string {
	t.Helper()
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return ""
	}
	file, anchor, _ := strings.Cut(target, "#")
	path := page
	if file != "" {
		path = filepath.Join(filepath.Dir(page), filepath.FromSlash(file))
	}
	if _, err := os.Stat(path); err != nil {
		return "no such file"
	}
	if anchor != "" && filepath.Ext(path) == ".md" && !anchorsOf(t, path)[anchor] {
		return "no such heading"
	}
	return ""
}

// anchorsOf makes the anchors of a page's headings as GitHub does: lower case, no punctuation, dashes for spaces.
func anchorsOf(t *testing.T, path string) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	anchors, times := map[string]bool{}, map[string]int{}
	for _, m := range headings.FindAllStringSubmatch(fences.ReplaceAllString(string(text), ""), -1) {
		slug := strings.ReplaceAll(notSlug.ReplaceAllString(strings.ToLower(strings.TrimSpace(m[1])), ""), " ", "-")
		times[slug]++
		if times[slug] > 1 {
			slug = fmt.Sprintf("%s-%d", slug, times[slug]-1)
		}
		anchors[slug] = true
	}
	return anchors
}
