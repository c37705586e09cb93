package amqp

// Skip checks the next value for being well-formed, and returns its encoding without decoding it.
func (r *Reader) Skip() ([]byte, error) {
	start := r.b
	if err := r.skip(); err != nil {
		return nil, err
	}
	n := len(start) - len(r.b)
	return start[:n:n], nil
}

func (r *Reader) skip() error {
	code, err := r.byte()
	if err != nil {
		return err
	}
	if code != codeDescribed {
		return r.skipBody(code)
	}
	if err := r.enter(); err != nil {
		return err
	}
	defer r.leave()
	if err := r.skip(); err != nil {
		return err
	}
	return r.skip()
}

func (r *Reader) skipBody(code byte) error {
	if r.budget--; r.budget < 0 {
		return malformed("more values than bytes")
	}
	switch code {
	case codeNull, codeTrue, codeFalse, codeUint0, codeUlong0, codeList0:
		return nil
	case codeDecimal128, codeUUID:
		return r.drop(16)
	case codeUbyte, codeByte, codeSmallUint, codeSmallUlong, codeSmallInt, codeSmallLong:
		return r.drop(1)
	case codeBool:
		_, err := r.fixed(code, 1)
		return err
	case codeUshort, codeShort:
		return r.drop(2)
	case codeUint, codeInt, codeFloat, codeChar, codeDecimal32:
		return r.drop(4)
	case codeUlong, codeLong, codeDouble, codeTimestamp, codeDecimal64:
		return r.drop(8)
	case codeBin8, codeStr8, codeSym8:
		return r.skipVariable(1)
	case codeBin32, codeStr32, codeSym32:
		return r.skipVariable(4)
	case codeList8, codeMap8, codeArray8, codeList32, codeMap32, codeArray32:
		return r.skipCompound(code)
	}
	return malformed("unknown constructor %#02x", code)
}

func (r *Reader) drop(n int) error {
	_, err := r.take(n)
	return err
}

func (r *Reader) skipVariable(width int) error {
	n, err := r.uint(width)
	if err != nil {
		return err
	}
	return r.drop(int(n))
}

func (r *Reader) skipCompound(code byte) error {
	if err := r.enter(); err != nil {
		return err
	}
	defer r.leave()
	items, count, err := r.compoundHeader(code)
	if err != nil {
		return err
	}
	switch code {
	case codeArray8, codeArray32:
		err = items.skipArray(count)
	case codeMap8, codeMap32:
		if count%2 != 0 {
			return malformed("map of %d keys and values", count)
		}
		err = items.skipItems(count)
	default:
		err = items.skipItems(count)
	}
	r.budget = items.budget
	if err == nil && len(items.b) > 0 {
		err = malformed("%d bytes after the last item of a compound value", len(items.b))
	}
	return err
}

func (r *Reader) skipItems(count int) error {
	if count > len(r.b) {
		return malformed("%d items in %d bytes", count, len(r.b))
	}
	for range count {
		if err := r.skip(); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reader) skipArray(count int) error {
	code, err := r.byte()
	if err != nil {
		return err
	}
	if code == codeDescribed {
		d, err := r.Value()
		if err != nil {
			return err
		}
		if code, err = r.byte(); err != nil {
			return err
		}
		if d == nil || code == codeDescribed {
			return malformed("array with a null descriptor or two descriptors")
		}
	}
	if count < 0 || count > r.budget {
		return malformed("array of %d items", count)
	}
	for range count {
		if err := r.skipBody(code); err != nil {
			return err
		}
	}
	return nil
}
