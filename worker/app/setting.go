package app

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/orderworker/orderworker/internal/messagejson"
)

// A setting is one row of the table of settings: a variable of the environment, and a flag that overrides it.
type setting struct {
	env string
	// flag is empty for secrets, which have no business on a command line.
	flag     string
	fallback string
	kind     kind
	meaning  string
}

// take applies a value. Quotes around it would be part of it: a shell takes them away, but docker's --env-file and some forms
// do not, and a consumer that has them in its name is another consumer.
func (s setting) take(value string) error {
	first, last := value[:1], value[len(value)-1:]
	if len(value) > 1 && first == last && strings.Contains(`"'`, first) {
		return errors.New("the value is in quotes, which are part of it here. Remove them: only a shell takes them away, docker --env-file does not")
	}
	return s.kind.set(value)
}

// A kind is a type of value: what help calls it, and how a field is set to one.
type kind struct {
	name string
	set  func(string) error
}

func parsed[T any](name string, field *T, parse func(string) (T, error)) kind {
	return kind{name, func(text string) error {
		v, err := parse(text)
		if err == nil {
			*field = v
		}
		return err
	}}
}

func text[T ~string](field *T) kind {
	return parsed("string", field, func(v string) (T, error) { return T(v), nil })
}

// queueName takes the name of a queue, and not the path of what belongs to a queue or a topic.
func queueName(v string) (string, error) {
	path := strings.ToLower(v)
	switch {
	case strings.Contains(path, "sharedaccess"), strings.Contains(path, "endpoint="): // it holds a secret, so nothing of it is repeated
		return "", errors.New("this is a connection string. Give the name of the queue, and the connection string in SERVICEBUS_CONNECTION_STRING")
	case strings.Contains(path, "/subscriptions/"):
		return "", fmt.Errorf("%q is a subscription of a topic. Give the topic in SERVICEBUS_TOPIC and the subscription in SERVICEBUS_SUBSCRIPTION", v)
	case path != strings.TrimSpace(path):
		return "", fmt.Errorf("%q begins or ends with a blank or a line break, which no queue has in its name", v)
	case strings.Contains(path, "/$"):
		return "", fmt.Errorf("%q is a part of a queue. Give the queue itself; for its dead letters there is the command deadletter", v)
	}
	return v, nil
}

// longest is a limit for durations that have none of their own.
const longest = 100 * 365 * 24 * time.Hour

func duration(field *time.Duration, least, most time.Duration) kind {
	return parsed("duration", field, func(v string) (time.Duration, error) {
		d, err := messagejson.ParseDuration(v)
		if err == nil && (d < least || d > most) {
			err = fmt.Errorf("%s is not from %s to %s", v, least, most)
		}
		return d, err
	})
}

func whole(field *int, least, most int) kind {
	return parsed("int", field, func(v string) (int, error) {
		n, err := strconv.Atoi(v)
		if err != nil || n < least || n > most {
			return 0, fmt.Errorf("%q is not a whole number from %d to %d", v, least, most)
		}
		return n, nil
	})
}

func yesNo(field *bool) kind {
	return parsed("bool", field, func(v string) (bool, error) {
		b, err := strconv.ParseBool(v)
		if err != nil {
			return false, fmt.Errorf("%q is neither true nor false", v)
		}
		return b, nil
	})
}

// word is a kind that takes one of some words, of which parse makes the value.
func word[T any](field *T, parse func(string) (T, error), words ...string) kind {
	return parsed(strings.Join(words, "|"), field, func(v string) (T, error) {
		if !slices.Contains(words, v) {
			var none T
			return none, fmt.Errorf("%q is not one of %s", v, strings.Join(words, ", "))
		}
		return parse(v)
	})
}

func oneOf(field *string, words ...string) kind {
	return word(field, func(v string) (string, error) { return v, nil }, words...)
}

// either is a bool with words of its own.
func either(field *bool, no, yes string) kind {
	return word(field, func(v string) (bool, error) { return v == yes, nil }, no, yes)
}

func level(field *slog.Level) kind {
	return word(field, func(v string) (l slog.Level, err error) { return l, l.UnmarshalText([]byte(v)) }, "debug", "info", "warn", "error")
}

// entities are the names of queues and topics, separated by commas.
func entities(field *[]string) kind {
	return parsed("names", field, func(v string) ([]string, error) {
		var all []string
		for name := range strings.SplitSeq(v, ",") {
			name, err := queueName(strings.TrimSpace(name))
			if err != nil {
				return nil, err
			}
			if name == "" {
				return nil, errors.New("a name between two commas is missing")
			}
			all = append(all, name)
		}
		return all, nil
	})
}

func pointers(field *[]string) kind {
	return parsed("pointers", field, func(v string) ([]string, error) {
		all := strings.Split(v, ",")
		for i, p := range all {
			all[i] = strings.TrimSpace(p)
			if !strings.HasPrefix(all[i], "/") {
				return nil, fmt.Errorf("%q is not a JSON pointer; write /name or /outer/inner, separated by commas", all[i])
			}
		}
		return all, nil
	})
}
