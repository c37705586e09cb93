package cosmosdb

import (
	"encoding/binary"
	"encoding/hex"
	"math"
	"math/bits"
	"net/http"
	"strings"
)

// keyRange is a range of effective partition keys, the hashes by which the service spreads logical partitions: upper-case
// hexadecimal text, the minimum inside and the maximum outside of the range. The zero keyRange has every key.
type keyRange struct{ min, max string }

func (r keyRange) has(epk string) bool { return r.min <= epk && (r.max == "" || epk < r.max) }

// readKeyRange reads the range that a request is narrowed to.
func (a *Account) readKeyRange(q *request, d definition) (keyRange, *reply) {
	r := keyRange{min: strings.ToUpper(q.header.Get(headerStartEPK)), max: strings.ToUpper(q.header.Get(headerEndEPK))}
	kind := q.header.Get(headerReadKeyType)
	refused := func(what string) (keyRange, *reply) {
		answer := a.refuseLocked(q, what)
		return r, &answer
	}
	switch {
	case r == keyRange{} && kind == "":
		return r, nil
	case kind != "" && !strings.EqualFold(kind, "EffectivePartitionKeyRange"):
		return refused("the read key type " + kind)
	case d.keyVersion != 2 && (r.min != "" || r.max != "" && r.max != "FF"):
		return refused("effective partition keys of a container whose partition key has version 1")
	case !isHexText(r.min) || !isHexText(r.max) || r.max != "" && r.min >= r.max:
		no := refuse(http.StatusBadRequest, 0, "the range of effective partition keys from "+r.min+" to "+r.max+" is not a range of hexadecimal texts")
		return r, &no
	}
	return r, nil
}

// inside reports whether a document with this partition key is in the range.
func (d definition) inside(k partitionKey, r keyRange) bool {
	return r == keyRange{} || r == keyRange{max: "FF"} || r.has(d.effective(k))
}

func isHexText(s string) bool {
	return !strings.ContainsFunc(s, func(c rune) bool { return c > 'f' || !isHex(byte(c)) })
}

// effective is the effective partition key of a value, for version 2 of the hash. A hierarchical key has the hashes of its
// components one after the other, so that a prefix of the value has a prefix of the text. As the clients compute it
// (azure-cosmos 4.17.1 for Python, partition_key.py).
func (d definition) effective(k partitionKey) string {
	var text strings.Builder
	for _, component := range k {
		lo, hi := murmur128(hashed(component))
		sum := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, hi), lo)
		sum[0] &= 0x3f // below the maximum FF
		text.WriteString(strings.ToUpper(hex.EncodeToString(sum)))
	}
	return text.String()
}

// hashed is what the hash sees of a component: its type, and its value.
func hashed(component any) []byte {
	switch c := component.(type) {
	case nil:
		return []byte{1}
	case bool:
		if c {
			return []byte{3}
		}
		return []byte{2}
	case float64:
		return binary.LittleEndian.AppendUint64([]byte{5}, math.Float64bits(c))
	case string:
		return append(append([]byte{8}, c...), 0xff)
	}
	return []byte{0} // undefined
}

// The constants of MurmurHash3, x64 variant of 128 bits (Austin Appleby, public domain).
const (
	murmurC1 = 0x87c37b91114253d5
	murmurC2 = 0x4cf5ad432745937f
)

// murmur128 is MurmurHash3 with the seed zero. It returns the lower and the upper half.
func murmur128(b []byte) (h1, h2 uint64) {
	size := uint64(len(b))
	for ; len(b) >= 16; b = b[16:] {
		h1 ^= murmurFirst(binary.LittleEndian.Uint64(b))
		h1 = (bits.RotateLeft64(h1, 27)+h2)*5 + 0x52dce729
		h2 ^= murmurSecond(binary.LittleEndian.Uint64(b[8:]))
		h2 = (bits.RotateLeft64(h2, 31)+h1)*5 + 0x38495ab5
	}
	var tail [16]byte
	copy(tail[:], b)
	h2 ^= murmurSecond(binary.LittleEndian.Uint64(tail[8:]))
	h1 ^= murmurFirst(binary.LittleEndian.Uint64(tail[:]))
	h1, h2 = h1^size, h2^size
	h1 += h2
	h2 += h1
	h1, h2 = murmurMix(h1), murmurMix(h2)
	h1 += h2
	return h1, h2 + h1
}

func murmurFirst(k uint64) uint64  { return bits.RotateLeft64(k*murmurC1, 31) * murmurC2 }
func murmurSecond(k uint64) uint64 { return bits.RotateLeft64(k*murmurC2, 33) * murmurC1 }

func murmurMix(k uint64) uint64 {
	k = (k ^ k>>33) * 0xff51afd7ed558ccd
	k = (k ^ k>>33) * 0xc4ceb9fe1a85ec53
	return k ^ k>>33
}
