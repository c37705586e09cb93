package amqp

// WithMessageID returns a properties section with the message id set; the encodings of the other fields stay. A nil section
// gives one with the id alone. The section must be well-formed.
func WithMessageID(section []byte, id string) ([]byte, error) {
	w := compose(nil, descProperties)
	w.text(id)
	f, err := openSection(section)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return w.done(), nil
	}
	f.skip()
	for f.err == nil && f.count > 0 {
		f.count--
		raw, err := f.r.Skip()
		if err != nil {
			return nil, err
		}
		w.dst = append(w.dst, raw...)
		w.set()
	}
	return w.done(), f.err
}
