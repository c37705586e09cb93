package body

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strconv"

	"github.com/orderworker/orderworker/worker/reason"
)

// The old .NET library serialised a body as one element in the binary XML format of MS-NBFX: a short element record with
// the name of the type, a namespace record, and text records with a length in front of their bytes.
const (
	recordShortElement = 0x40
	recordXmlns        = 0x08
	recordEndElement   = 0x01
	schemaNamespace    = "http://schemas.microsoft.com/2003/10/Serialization/"
)

// Text records. Each has a twin with the lowest bit set, which ends the element too.
const (
	recordZero    = 0x80 // the text 0
	recordOne     = 0x82 // the text 1
	recordChars8  = 0x98
	recordChars16 = 0x9A
	recordChars32 = 0x9C
	recordBytes8  = 0x9E
	recordBytes16 = 0xA0
	recordBytes32 = 0xA2
	recordEmpty   = 0xA8
)

// unwrap removes a DataContract envelope, if there is one.
func (d *Decoded) unwrap(o Options) *reason.Refusal {
	name, content, ok := dataContract(d.Bytes)
	if !ok {
		return nil
	}
	if o.RefuseDataContract {
		return reason.Refuse(reason.DataContractBody, "The body is wrapped by the old .NET serialiser (type %s), and this consumer is "+
			"configured to refuse that. The sender must send the bytes themselves, as a stream.", shorten(name))
	}
	inner, err := unwrapRecords(name, content)
	if err != nil {
		return reason.Refuse(reason.DataContractBody, "The body is wrapped by the old .NET serialiser (type %s) and cannot be unwrapped: %v. "+
			"The sender must send the bytes themselves, as a stream.", shorten(name), err)
	}
	d.Bytes, d.Unwrapped = inner, true
	return nil
}

// dataContract recognises the head of an envelope and returns the name of the type and the records after it. Only the whole
// head counts: an element record, a name, and the namespace of the serialiser.
func dataContract(data []byte) (name string, records []byte, ok bool) {
	if len(data) < 2 || data[0] != recordShortElement {
		return "", nil, false
	}
	size := int(data[1])
	if size == 0 || size >= 0x80 || len(data) < 2+size {
		return "", nil, false
	}
	rest, ok := bytes.CutPrefix(data[2+size:], append([]byte{recordXmlns, byte(len(schemaNamespace))}, schemaNamespace...))
	return string(data[2 : 2+size]), rest, ok
}

// unwrapRecords joins the text records of an envelope. They must be of the type's own kind, and the last must end the
// element exactly at the end of the body. A record may be a single byte, so nothing is kept for each of them.
func unwrapRecords(name string, records []byte) ([]byte, error) {
	if name != "string" && name != "base64Binary" {
		return nil, errors.New("only string and base64Binary are known")
	}
	var content []byte
	digits := []byte("01")
	for first := true; ; first = false {
		if len(records) == 0 {
			return nil, errors.New("the element does not end")
		}
		if records[0] == recordEndElement {
			records = records[1:]
			break
		}
		ends := records[0]&1 == 1
		part, rest, err := textRecord(name, records[0]&^1, records[1:], digits)
		if err != nil {
			return nil, err
		}
		if records = rest; first && ends {
			content = part // The usual envelope has one record, whose bytes need not be copied.
			break
		}
		content = append(content, part...)
		if ends {
			break
		}
	}
	if len(records) > 0 {
		return nil, errors.New(strconv.Itoa(len(records)) + " bytes follow the end of the element")
	}
	return content, nil
}

// textRecord reads one record after its type byte. The text of a record without bytes of its own is taken from digits, "01".
func textRecord(name string, kind byte, data, digits []byte) (text, rest []byte, err error) {
	chars := kind == recordChars8 || kind == recordChars16 || kind == recordChars32 || kind == recordZero || kind == recordOne
	if kind != recordEmpty && chars != (name == "string") {
		return nil, nil, errors.New("a record of type 0x" + strconv.FormatUint(uint64(kind), 16) + " does not belong into " + name)
	}
	width := 0
	switch kind {
	case recordEmpty:
		return nil, data, nil
	case recordZero:
		return digits[:1:1], data, nil
	case recordOne:
		return digits[1:], data, nil
	case recordChars8, recordBytes8:
		width = 1
	case recordChars16, recordBytes16:
		width = 2
	case recordChars32, recordBytes32:
		width = 4
	default:
		return nil, nil, errors.New("a record of type 0x" + strconv.FormatUint(uint64(kind), 16) + " is not text")
	}
	if len(data) < width {
		return nil, nil, errors.New("the body ends within a length")
	}
	var length [4]byte
	copy(length[:], data[:width])
	size, data := binary.LittleEndian.Uint32(length[:]), data[width:]
	if uint64(size) > uint64(len(data)) {
		return nil, nil, errors.New("a length of " + strconv.FormatUint(uint64(size), 10) + " bytes goes beyond the body")
	}
	return data[:size], data[size:], nil
}
