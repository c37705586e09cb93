package sqlrule_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/orderworker/orderworker/testenv/internal/sqlrule"
)

// A properties is a message of two maps.
type properties struct{ user, system map[string]any }

func (p properties) Value(n sqlrule.Name) (any, bool) {
	if n.System {
		v, ok := p.system[n.Text]
		return v, ok
	}
	v, ok := p.user[strings.ToLower(n.Text)]
	return v, ok
}

func (p properties) Set(n sqlrule.Name, v any) {
	if n.System {
		p.system[n.Text] = v
		return
	}
	p.user[strings.ToLower(n.Text)] = v
}

func (p properties) Remove(n sqlrule.Name) {
	delete(p.user, strings.ToLower(n.Text))
	if n.System {
		delete(p.system, n.Text)
	}
}

var parameters = map[string]any{"@color": "blue", "@amount": int64(40)}

func sample() properties {
	return properties{
		user: map[string]any{
			"color": "blue", "amount": int64(40), "rate": 1.5, "paid": true, "none": nil, "two words": "x", "hr-id": "7", "binary": []byte{1},
			"percent": "100%", "zeile": "ä_b",
		},
		system: map[string]any{"Label": "a bus", "To": "Store5", "MessageId": "m1"},
	}
}

func TestFilterSelectsWhatIsTrue(t *testing.T) {
	for in, want := range map[string]bool{
		"color = @color AND amount IN (1, @amount)": true, "color = @amount": false, "1=1": true, "1 = 0": false, "color = 'blue'": true, "COLOR='blue'": true, "user.color = 'Blue'": false, "color <> 'red'": true, "color != 'blue'": false,
		"amount > 39 AND amount <= 40": true, "amount >= 41 OR amount < 40": false, "amount = 40.0": true, "rate*2 = 3": true, "amount + 2 * 3 = 46": true,
		"(amount + 2) * 3 = 126": true, "-amount = -40": true, "- - amount = +40": true, "amount / 3 = 13": true, "amount % 7 = 5": true, "amount - 1 - 1 = 38": true,
		"1e1 = 10": true, "0.5E-2 < 0.006": true, "paid = TRUE": true, "paid = false": false, "paid <> false": true,
		"color = 'it''s'": false, "'it''s' = 'it''s'": true, "[two words] = 'x'": true, "[hr-id] = '7'": true, `"hr-id" = '7'`: true,
		"sys.Label LIKE '%bus%'": true, "sys.label LIKE 'bus'": false, "color LIKE 'b__e'": true, "color LIKE 'b_e'": false, "color NOT LIKE 'r%'": true,
		`percent LIKE '100\%' ESCAPE '\'`: true, `color LIKE 'blu\%' ESCAPE '\'`: false, "color LIKE '%'": true, "color LIKE ''": false, "zeile LIKE '__b'": true,
		"color LIKE '%l%e'": true, "color LIKE '%l%x'": false, "percent LIKE '%!%' ESCAPE '!'": true,
		"sys.To IN ('Store5','Store6')": true, "sys.To NOT IN ('Store5') OR color IN ('blue')": true, "amount IN (1, 2)": false, "amount NOT IN (1, 2)": true,
		"EXISTS(color)": true, "EXISTS (user.nothing)": false, "NOT EXISTS(nothing)": true, "exists(none)": true, "EXISTS(sys.To)": true,
		"none IS NULL": true, "nothing IS NULL": true, "color IS NULL": false, "color IS NOT NULL": true, "NOT color IS NULL": true, "sys.ReplyTo IS NULL": true,
		"property('co' + 'lor') = 'blue'": true, "p('nothing') = 'blue'": false, "newid() = newid()": false, "NOT NOT color = 'blue'": true,
		"color = 'red' OR color = 'blue' AND amount = 40": true, "(color = 'red' OR color = 'blue') AND amount = 41": false, "NOT (color = 'red' OR amount = 41)": true,
	} {
		f, err := sqlrule.ParseFilter(in, parameters)
		require.NoError(t, err, in)
		require.Equal(t, want, f.Matches(sample()), in)
	}
}

func TestUnknownIsNeitherTrueNorFalse(t *testing.T) {
	for _, in := range []string{
		"nothing = 1", "NOT nothing = 1", "nothing + 1 > 0", "NOT (nothing + 1 > 0)", "-nothing = 1", "nothing LIKE '%'", "nothing NOT LIKE '%'",
		"nothing IN (1)", "nothing NOT IN (1)", "nothing = 1 AND 1=1", "nothing = 1 OR 1=0", "color = 1", "NOT color = 1", "color > TRUE", "paid > FALSE",
		"none = NULL", "amount / 0 = 1", "amount % 0 = 1", "binary = 'x'", "color * 2 = 1", "amount LIKE '4%'", "p(1) = 1", "NOT amount NOT IN (nothing)",
		"color LIKE 'b' ESCAPE 'ab'",
	} {
		f, err := sqlrule.ParseFilter(in, parameters)
		require.NoError(t, err, in)
		require.False(t, f.Matches(sample()), in)
	}
	for _, in := range []string{"nothing = 1 OR 1=1", "NOT (nothing = 1 AND 1=0)"} {
		f, err := sqlrule.ParseFilter(in, parameters)
		require.NoError(t, err, in)
		require.True(t, f.Matches(sample()), in)
	}
}

func TestWhatIsNotSupportedIsRefusedByName(t *testing.T) {
	for in, want := range map[string]string{
		"":         "at 1: the name of a property is expected, not the end",
		"color":    "a comparison is expected",
		"TRUE":     "a comparison is expected",
		"a = @p":   "at 5: the parameter @p has no value",
		"sys.X=1":  `the system property "X" is not supported; supported are ContentType`,
		"my.x=1":   `the scope "my" is neither sys nor user`,
		"a = f(1)": `the function "f" is not supported; supported are newid`, "newid(1) = 1": `")" is expected, not "1"`, "p() = 1": "the name of a property",
		"a = 'x": "at 5: ' is missing", "[a = 1": "] is missing", "a = 1 b": `at 7: "b" is not expected here`, "a # 1": "the character '#' is not expected",
		"a = 1 AND 2": "joins comparisons", "NOT a": "NOT stands before a comparison", "a = (b = 1)": "a value is expected", "(a = 1) + 1 = 2": "joins values",
		"a IN ()": "the name of a property", "a IN (1": `")" is expected`, "a IN 1": `"(" is expected`, "a NOT 1": "IN or LIKE is expected", "a LIKE (b=1)": "a value is expected",
		"1 IS NULL": "the name of a property", "a + 1 IS NULL": "IS NULL stands behind the name", "a IS 1": `"null" is expected`, "EXISTS a": `"(" is expected`, "EXISTS(1)": "the name of a property",
		"and = 1": "the name of a property", "-(a = 1) = 2": "stands before a value", "a = 1e999": "too large", "user. = 1": "the name of a property",
		strings.Repeat("(", 100) + "1=1": "more than 64 parts are nested", strings.Repeat("NOT ", 100) + "1=1": "nested", strings.Repeat("-", 100) + "1=1": "nested",
		"a = '" + strings.Repeat("x", 1024) + "'": "at most 1024",
	} {
		_, err := sqlrule.ParseFilter(in, parameters)
		require.ErrorContains(t, err, want, in)
	}
	for in, want := range map[string]string{
		"": "SET or REMOVE is expected", "DROP x": `SET or REMOVE is expected, not "DROP"`, "SET a": `"=" is expected`, "SET a = b = 1": `not "="`, "SET a = (b = 1)": "a value is expected",
		"REMOVE": "the name of a property", "SET sys.Size = 1": "not supported", ";": "SET or REMOVE", "SET a = 'x": "missing",
	} {
		_, err := sqlrule.ParseAction(in, parameters)
		require.ErrorContains(t, err, want, in)
	}
}

func TestActionChangesProperties(t *testing.T) {
	a, err := sqlrule.ParseAction("SET color = 'red'; SET amount = amount + 2 SET sys.To = 'Store' + color; REMOVE rate; REMOVE sys.Label;; SET gone = nothing; SET id = newid(); SET paid = NULL", nil)
	require.NoError(t, err)
	m := sample()
	a.Apply(m)
	require.Equal(t, "red", m.user["color"])
	require.Equal(t, int64(42), m.user["amount"])
	require.NotContains(t, m.user, "rate")
	require.NotContains(t, m.user, "gone", "what is unknown sets nothing")
	require.Contains(t, m.user, "paid")
	require.Nil(t, m.user["paid"])
	require.Equal(t, map[string]any{"To": "Storered", "MessageId": "m1"}, m.system)
	require.Regexp(t, regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`), m.user["id"])
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"a = 1 AND NOT sys.To LIKE '%x' ESCAPE '!'", "SET a = b + 1; REMOVE c", "EXISTS([a b]) OR a NOT IN (1, 'x')", "a IS NOT NULL", "p('a') % -2.5e3 <> 1"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if p, err := sqlrule.ParseFilter(s, parameters); err == nil {
			p.Matches(sample())
		}
		if a, err := sqlrule.ParseAction(s, parameters); err == nil {
			a.Apply(sample())
		}
	})
}
