package identity_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/worker/identity"
)

func TestOnlyThirtyTwoLowerCaseHexDigitsLookAssignedByTheBroker(t *testing.T) {
	require.True(t, identity.LooksAssigned("3f25042a8bd94f0f9a1f4f0a2f0c9b11"))
	for _, id := range []string{
		"", "1042", "3f25042a-8bd9-4f0f-9a1f-4f0a2f0c9b11", "3F25042A8BD94F0F9A1F4F0A2F0C9B11", "3f25042a8bd94f0f9a1f4f0a2f0c9b1",
		"3f25042a8bd94f0f9a1f4f0a2f0c9b111", "3g25042a8bd94f0f9a1f4f0a2f0c9b11", " f25042a8bd94f0f9a1f4f0a2f0c9b11",
	} {
		require.False(t, identity.LooksAssigned(id), "%q", id)
	}
}

func TestAnIDIsBlankWithoutAVisibleCharacter(t *testing.T) {
	for _, text := range []string{"", " ", "\t\n", "\u00a0", "\u200b\u200d", "\ufeff", "\u3164", "\u2800", "\u115f", "\u1160", "\uffa0", "\u034f", "\ufe0f", "\U000e0001"} {
		require.True(t, identity.Blank(text), "%+q", text)
	}
	for _, text := range []string{"0", "-", " x ", "é", "\u0301", "한", "⠁", "\u3164a", "😀", "\xff"} {
		require.False(t, identity.Blank(text), "%+q", text)
	}
}
