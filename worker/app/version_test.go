package app

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestTheVersionNamesTheCommitWhereItIsKnown(t *testing.T) {
	t.Parallel()
	require.Empty(t, commitText("", "", false), "an image is built without the repository")
	require.Equal(t, " commit abc of 2026-12-01T00:00:00Z", commitText("abc", "2026-12-01T00:00:00Z", false))
	require.Equal(t, " commit abc of 2026-12-01T00:00:00Z with changes", commitText("abc", "2026-12-01T00:00:00Z", true))
}
