// Package sqlrule reads the SQL of rules of Service Bus subscriptions: filters and actions.
//
// The grammar is the one that Microsoft documents as "Subscription Rule SQL Filter Syntax" and "SQL Action Syntax":
//
//	filter:   NOT, AND, OR, ( ), = <> != > >= < <=, IS [NOT] NULL, [NOT] IN (...), [NOT] LIKE ... [ESCAPE ...], EXISTS (...)
//	values:   'text', 12, 1.5, 1e3, TRUE, FALSE, NULL, @parameter, properties, + - * / %, newid(), property(name), p(name)
//	names:    name, user.name, sys.Name, [delimited name], "quoted name"
//	actions:  SET name = value, REMOVE name; a semicolon between them may be left out
//
// Names do not depend on case, and text is compared character by character. What has no value is unknown, and so is what is
// computed from it; a filter selects a message only when it is true. Values whose types cannot be compared are unknown too,
// where the service fails the evaluation of the whole filter.
//
// Everything else is refused by name when an expression is parsed: parameters without a value, system properties other than
// those listed in property.go, and functions other than those above.
package sqlrule
