package cosmosdb

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/jsondoc"
	"github.com/orderworker/orderworker/testenv/cosmosdb/internal/query"
)

// maxPatch is how many steps a patch may have.
const maxPatch = 10

// patch is a partial update with add, set, replace, remove, incr and move.
type patch struct {
	condition string
	steps     []patchStep
}

type patchStep struct {
	op    string
	path  []string
	from  []string // of move
	value any
	given bool // the step has a value
}

// readPatch reads the body of a patch: an object with operations and perhaps a condition, or the operations alone, as the
// JavaScript client sends them.
func readPatch(body []byte) (patch, error) {
	v, err := jsondoc.Parse(body)
	if err != nil {
		return patch{}, fmt.Errorf("the patch is not valid: %w", err)
	}
	p := patch{}
	if doc, isObject := v.(*jsondoc.Object); isObject {
		p.condition, _ = doc.Text("condition")
		v, _ = doc.Get("operations")
	}
	steps, ok := v.([]any)
	if !ok || len(steps) == 0 || len(steps) > maxPatch {
		return patch{}, fmt.Errorf("a patch has 1 to %d operations", maxPatch)
	}
	for _, s := range steps {
		step, err := readPatchStep(s)
		if err != nil {
			return patch{}, err
		}
		p.steps = append(p.steps, step)
	}
	return p, nil
}

func readPatchStep(v any) (patchStep, error) {
	o, ok := v.(*jsondoc.Object)
	if !ok {
		return patchStep{}, errors.New("an operation of the patch is not an object")
	}
	s := patchStep{}
	s.op, _ = o.Text("op")
	s.op = strings.ToLower(s.op)
	var err error
	if s.path, err = readPatchPath(o, "path"); err != nil {
		return patchStep{}, err
	}
	if s.op == "move" {
		s.from, err = readPatchPath(o, "from")
		return s, err
	}
	s.value, s.given = o.Get("value")
	if !s.given && s.op != "remove" {
		return patchStep{}, fmt.Errorf("the operation %s of the patch has no value", s.op)
	}
	return s, nil
}

func readPatchPath(o *jsondoc.Object, member string) ([]string, error) {
	text, _ := o.Text(member)
	if !strings.HasPrefix(text, "/") || len(text) < 2 {
		return nil, fmt.Errorf("the path %q of the patch does not begin with a slash and a name", text)
	}
	var path []string
	for _, name := range strings.Split(text[1:], "/") {
		path = append(path, strings.NewReplacer("~1", "/", "~0", "~").Replace(name))
	}
	if len(path) == 1 && slices.Contains(systemProperties, path[0]) || path[0] == "id" {
		return nil, fmt.Errorf("the path %q of the patch cannot be changed", text)
	}
	return path, nil
}

var systemProperties = []string{"_rid", "_self", "_etag", "_attachments", "_ts"}

// applies reports whether the condition of the patch holds for a document.
func (p patch) applies(doc *jsondoc.Object) (bool, error) {
	if p.condition == "" {
		return true, nil
	}
	c, err := query.ParseCondition(p.condition)
	if err != nil {
		return false, err
	}
	return c.Matches(doc, nil), nil
}

func (s patchStep) apply(doc *jsondoc.Object) error {
	if s.op == "move" {
		return s.move(doc)
	}
	parent, ok := jsondoc.At(doc, s.path[:len(s.path)-1])
	if list, inList := s.listParent(doc); inList {
		return s.applyToList(doc, list)
	}
	o, isObject := parent.(*jsondoc.Object)
	if !ok || !isObject {
		return fmt.Errorf("the patch goes to %s, whose parent does not exist", s.where())
	}
	name := s.path[len(s.path)-1]
	old, exists := o.Get(name)
	switch s.op {
	case "add", "set":
		o.Set(name, jsondoc.Clone(s.value))
	case "replace":
		if !exists {
			return fmt.Errorf("the patch replaces %s, which does not exist", s.where())
		}
		o.Set(name, jsondoc.Clone(s.value))
	case "remove":
		if !o.Delete(name) {
			return fmt.Errorf("the patch removes %s, which does not exist", s.where())
		}
	case "incr":
		sum, err := s.increment(old, exists)
		if err != nil {
			return err
		}
		o.Set(name, sum)
	default:
		return fmt.Errorf("unknown patch operation %q", s.op)
	}
	return nil
}

// move takes a value from one place to another, over whatever the place holds. Within an array that is an insertion, as in the
// documentation of the service.
func (s patchStep) move(doc *jsondoc.Object) error {
	value, ok := jsondoc.At(doc, s.from)
	if !ok {
		value, ok = elementAt(doc, s.from)
	}
	if !ok {
		return fmt.Errorf("the patch moves %s, which does not exist", pointer(s.from))
	}
	if err := (patchStep{op: "remove", path: s.from}).apply(doc); err != nil {
		return err
	}
	return patchStep{op: "add", path: s.path, value: value}.apply(doc)
}

// elementAt returns the element of an array that a path names.
func elementAt(doc *jsondoc.Object, path []string) (any, bool) {
	parent, _ := jsondoc.At(doc, path[:len(path)-1])
	list, _ := parent.([]any)
	i, err := strconv.Atoi(path[len(path)-1])
	if err != nil || i < 0 || i >= len(list) {
		return nil, false
	}
	return list[i], true
}

func (s patchStep) where() string { return pointer(s.path) }

func pointer(path []string) string { return "/" + strings.Join(path, "/") }

func (s patchStep) increment(old any, exists bool) (any, error) {
	by, ok := s.value.(float64)
	if !ok {
		return nil, fmt.Errorf("the patch increments %s by something that is not a number", s.where())
	}
	if !exists {
		return by, nil
	}
	n, ok := old.(float64)
	if !ok {
		return nil, fmt.Errorf("the patch increments %s, which is not a number", s.where())
	}
	return n + by, nil
}

// listParent returns the list whose element the path names, if it names one. Lists inside lists are not reached.
func (s patchStep) listParent(doc *jsondoc.Object) ([]any, bool) {
	v, _ := jsondoc.At(doc, s.path[:len(s.path)-1])
	list, ok := v.([]any)
	return list, ok && len(s.path) > 1
}

func (s patchStep) applyToList(doc *jsondoc.Object, list []any) error {
	last := s.path[len(s.path)-1]
	i := len(list)
	if last != "-" {
		var err error
		if i, err = strconv.Atoi(last); err != nil {
			return fmt.Errorf("the patch goes to %s, which is no element of the array", s.where())
		}
	}
	inside := i >= 0 && i < len(list)
	switch {
	case s.op == "add" && i >= 0 && i <= len(list):
		list = slices.Insert(slices.Clone(list), i, jsondoc.Clone(s.value))
	case s.op == "set" && i == len(list):
		list = append(slices.Clone(list), jsondoc.Clone(s.value))
	case (s.op == "set" || s.op == "replace") && inside:
		list = slices.Clone(list)
		list[i] = jsondoc.Clone(s.value)
	case s.op == "remove" && inside:
		list = slices.Delete(slices.Clone(list), i, i+1)
	case s.op == "incr" && inside:
		sum, err := s.increment(list[i], true)
		if err != nil {
			return err
		}
		list = slices.Clone(list)
		list[i] = sum
	default:
		return fmt.Errorf("the patch goes to %s, which is outside the array", s.where())
	}
	owner, _ := jsondoc.At(doc, s.path[:len(s.path)-2])
	owner.(*jsondoc.Object).Set(s.path[len(s.path)-2], list)
	return nil
}
