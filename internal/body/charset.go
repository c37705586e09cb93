package body

import "strings"

// isPlain reports whether an encoding says that the bytes are as they are.
func isPlain(coding string) bool {
	switch coding {
	case "", "identity", "none", "7bit", "8bit", "binary":
		return true
	}
	return false
}

// isCharset reports whether an encoding, in lower case, is the name of a character set. Celery and others write one where the
// compression belongs. It does not count: the check for UTF-8 decides, whatever the name says.
func isCharset(coding string) bool {
	coding = strings.TrimPrefix(coding, "charset=")
	switch coding {
	case "ascii", "ansi", "unicode", "unicodefffe", "gb2312", "gbk", "gb18030", "hz-gb-2312", "macintosh", "big5", "big5-hkscs", "sjis",
		"shift_jis", "shift-jis", "tis-620":
		return true
	}
	for _, family := range []string{
		"utf-", "utf8", "utf16", "utf32", "utf_", "us-ascii", "iso-8859-", "iso8859", "iso_8859", "iso-2022-", "latin", "windows-", "cp125", "cp437",
		"cp85", "cp86", "cp93", "ibm", "koi8", "euc-", "ucs-", "x-mac-", "ks_c_", "ansi_x3",
	} {
		if strings.HasPrefix(coding, family) {
			return true
		}
	}
	return false
}
