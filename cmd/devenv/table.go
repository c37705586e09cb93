package main

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// table is text in columns. Cells that are too long are wrapped between words.
type table struct {
	head []string
	rows [][]string
	// most is the widest that each column may become.
	most []int
}

const columnGap = 2

// write prints the table with a line under its head.
func (t table) write(w io.Writer) {
	widths := t.widths()
	t.writeRow(w, widths, t.head)
	rule := make([]string, len(widths))
	for i, n := range widths {
		rule[i] = strings.Repeat("-", n)
	}
	t.writeRow(w, widths, rule)
	for _, row := range t.rows {
		t.writeRow(w, widths, row)
	}
}

func (t table) widths() []int {
	widths := make([]int, len(t.head))
	for _, row := range append([][]string{t.head}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], min(utf8.RuneCountInString(cell), t.most[i]))
		}
	}
	return widths
}

func (t table) writeRow(w io.Writer, widths []int, row []string) {
	cells := make([][]string, len(row))
	height := 1
	for i, cell := range row {
		cells[i] = wrap(cell, widths[i])
		height = max(height, len(cells[i]))
	}
	for n := range height {
		var b strings.Builder
		for i, lines := range cells {
			text := ""
			if n < len(lines) {
				text = lines[n]
			}
			b.WriteString(text)
			if i < len(cells)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text)+columnGap))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// wrap breaks text into lines of at most width characters, between words where it can.
func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		for utf8.RuneCountInString(word) > width {
			if line != "" {
				lines, line = append(lines, line), ""
			}
			runes := []rune(word)
			lines, word = append(lines, string(runes[:width])), string(runes[width:])
		}
		switch {
		case line == "":
			line = word
		case utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) <= width:
			line += " " + word
		default:
			lines, line = append(lines, line), word
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
