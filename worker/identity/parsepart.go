package identity

import (
	"errors"
	"fmt"
	"strings"
)

// ParsePartDocumentID takes the id of a further document of a message apart: the id of its deciding document, and the name of
// the part. It accepts exactly the results of [PartDocumentID]; for one that was shortened to a digest it returns [ErrDigest],
// and for any other text [ErrNotKeyID].
func ParsePartDocumentID(id string) (documentID, part string, err error) {
	if digits, ok := strings.CutPrefix(id, tagPartDigest); ok && len(digits) == 64 && strings.Trim(digits, lowerHex) == "" {
		return "", "", ErrDigest
	}
	documentID, name, found := strings.Cut(id, tagPart)
	if !found {
		return "", "", fmt.Errorf("%w: it names no part", ErrNotKeyID)
	}
	if part, err = unescape(name); err != nil {
		return "", "", fmt.Errorf("%w: the part: %w", ErrNotKeyID, err)
	}
	if _, err := ParseDocumentID(documentID); err != nil && !errors.Is(err, ErrDigest) {
		return "", "", err
	}
	if PartDocumentID(documentID, part) != id {
		return "", "", fmt.Errorf("%w: part %q of %q has the id %q", ErrNotKeyID, part, documentID, PartDocumentID(documentID, part))
	}
	return documentID, part, nil
}
