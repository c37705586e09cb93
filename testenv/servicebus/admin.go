package servicebus

import (
	"context"
	"encoding/xml"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/orderworker/orderworker/testenv/history"
)

// maxAdminBody bounds the body of a request, in bytes.
const maxAdminBody = 1 << 20

// An adminRequest is a request to the administration API: what it is about, by names in the case of the request.
type adminRequest struct {
	kind               adminKind
	parent, name, rule string // parent is the topic of a subscription and of its rules
	list               bool
	skip, top          int
	address            string // of the request, without its query
	update             bool
	description        description
}

// adminKind is the kind of resource that a request is about, by its name in errors.
type adminKind string

const (
	adminNamespace    adminKind = "Namespace"
	adminQueue        adminKind = "Queue"
	adminTopic        adminKind = "Topic"
	adminSubscription adminKind = "Subscription"
	adminRule         adminKind = "Rule"
	adminEntity       adminKind = "Entity" // a queue or a topic: the path does not tell
)

// An adminReply answers a request. after is called when the namespace is no longer locked.
type adminReply struct {
	status int
	body   string // XML
	after  func()
}

func adminError(status int, format string, args ...any) adminReply {
	return adminReply{status: status, body: fmt.Sprintf("<Error><Code>%d</Code><Detail>%s</Detail></Error>", status, escaped(fmt.Sprintf(format, args...)))}
}

// isAdmin reports whether a request is one to the administration API: its clients say which version they speak.
func isAdmin(r *http.Request) bool { return r.URL.Query().Has("api-version") }

// administer carries out a request as the administration clients of Azure make it: ATOM entries over HTTP.
func (b *Broker) administer(w http.ResponseWriter, r *http.Request) {
	a, err := readAdminRequest(r)
	var reply adminReply
	switch {
	case err != nil:
		reply = adminError(http.StatusBadRequest, "SubCode=40000. %v", err)
	case b.isClosed():
		reply = adminError(http.StatusServiceUnavailable, "the broker is closed")
	default:
		reply = b.administerAs(a, r)
	}
	b.opts.History.Add(history.Event{Op: history.Administer, Entity: r.URL.Path, Status: reply.status, Note: r.Method, Effect: reply.status < 300 && r.Method != http.MethodGet})
	w.Header().Set("Content-Type", "application/atom+xml;type=entry;charset=utf-8")
	w.WriteHeader(reply.status)
	if _, err := io.WriteString(w, reply.body); err != nil {
		b.opts.Logger.LogAttrs(context.Background(), slog.LevelDebug, "administration reply not sent", slog.Any("error", err))
	}
}

// administerAs checks the rights of a request and carries it out.
func (b *Broker) administerAs(a adminRequest, r *http.Request) adminReply {
	rights, problem := b.adminRights(r)
	if problem != "" {
		return adminError(http.StatusUnauthorized, "%s", problem)
	}
	do := map[string]func(adminRequest) adminReply{
		http.MethodGet: b.adminGetLocked, http.MethodPut: b.adminPutLocked, http.MethodDelete: b.adminDeleteLocked,
	}[r.Method]
	if do == nil {
		return adminError(http.StatusMethodNotAllowed, "the method %s is not known here", r.Method)
	}
	b.namespace.mu.Lock()
	b.namespace.advanceLocked(time.Now())
	reply := adminReply{}
	if rights&Manage == Manage || r.Method == http.MethodGet && b.adminMissingLocked(a) {
		reply = do(a)
	} else {
		reply = a.unauthorized(r.Method)
	}
	b.namespace.mu.Unlock()
	if reply.after != nil {
		reply.after()
	}
	return reply
}

// adminRights returns what the token of a request allows.
func (b *Broker) adminRights(r *http.Request) (Rights, string) {
	token := r.Header.Get("Authorization")
	if jwt, ok := strings.CutPrefix(token, "Bearer "); ok && jwt != "" {
		if !b.opts.AcceptJWT {
			return 0, "InvalidToken: tokens of type jwt are not accepted; set AcceptJWT"
		}
		return Manage, ""
	}
	rights, _, problem := verifySAS(token, sasHost(token)+r.URL.RequestURI(), b.opts.Keys, time.Now())
	return rights, problem
}

// unauthorized is the refusal of a request without the right, in the words of the service.
func (a adminRequest) unauthorized(method string) adminReply {
	if a.kind == adminSubscription || a.kind == adminRule {
		operation := map[string]string{http.MethodGet: "Get", http.MethodPut: "CreateOrUpdate", http.MethodDelete: "Delete"}[method] + string(a.kind)
		if a.list {
			operation = "Enumerate" + string(a.kind) + "s"
		}
		return adminError(http.StatusUnauthorized, "401 SubCode=40100: Unauthorized : Unauthorized access for '%s' operation on endpoint '%s'.", operation, a.parent)
	}
	if method == http.MethodGet {
		return adminError(http.StatusUnauthorized, "Manage,EntityRead claims required for this operation.")
	}
	action := map[string]string{http.MethodPut: "EntityWrite", http.MethodDelete: "EntityDelete"}[method]
	return adminError(http.StatusUnauthorized, "SubCode=40100. Authorization failed for specified action: Manage,%s.", action)
}

// readAdminRequest tells what a request is about.
func readAdminRequest(r *http.Request) (adminRequest, error) {
	a := adminRequest{top: 100, update: r.Header.Get("If-Match") != "", address: "http://" + r.Host + r.URL.Path}
	a.readPath(strings.Trim(r.URL.Path, "/"))
	for name, dst := range map[string]*int{"$skip": &a.skip, "$top": &a.top} {
		if s := r.URL.Query().Get(name); s != "" {
			n, err := strconv.Atoi(s)
			if err != nil || n < 0 {
				return a, fmt.Errorf("%s=%q is not a whole number", name, s)
			}
			*dst = n
		}
	}
	if r.Method != http.MethodPut {
		return a, nil
	}
	var e struct {
		Content struct {
			Description description `xml:",any"`
		} `xml:"content"`
	}
	if err := xml.NewDecoder(http.MaxBytesReader(nil, r.Body, maxAdminBody)).Decode(&e); err != nil {
		return a, fmt.Errorf("the entry cannot be read: %w", err)
	}
	a.description = e.Content.Description
	if a.kind == adminEntity {
		a.kind = map[string]adminKind{"QueueDescription": adminQueue, "TopicDescription": adminTopic}[a.description.XMLName.Local]
	}
	if a.list || a.kind == adminNamespace || a.description.XMLName.Local != string(a.kind)+"Description" {
		return a, fmt.Errorf("a %q cannot be put here", a.description.XMLName.Local)
	}
	return a, nil
}

// readPath takes a path apart: an entity, a topic's Subscriptions, one of these, its Rules, one of these, or a list of $Resources.
func (a *adminRequest) readPath(path string) {
	parts := strings.Split(path, "/")
	is := func(i int, word string) bool { return i >= 0 && i < len(parts) && strings.EqualFold(parts[i], word) }
	n := len(parts)
	switch {
	case is(0, "$namespaceinfo"):
		a.kind = adminNamespace
	case is(0, "$Resources"):
		a.list, a.kind = true, adminQueue
		if is(1, "Topics") {
			a.kind = adminTopic
		}
	case is(n-4, "Subscriptions") && is(n-2, "Rules"):
		a.kind, a.parent, a.name, a.rule = adminRule, strings.Join(parts[:n-4], "/"), parts[n-3], parts[n-1]
	case is(n-3, "Subscriptions") && is(n-1, "Rules"):
		a.kind, a.parent, a.name, a.list = adminRule, strings.Join(parts[:n-3], "/"), parts[n-2], true
	case is(n-1, "Subscriptions"):
		a.kind, a.parent, a.list = adminSubscription, strings.Join(parts[:n-1], "/"), true
	case is(n-2, "Subscriptions"):
		a.kind, a.parent, a.name = adminSubscription, strings.Join(parts[:n-2], "/"), parts[n-1]
	default:
		a.kind, a.name = adminEntity, path
	}
}

// path is the path of the entity that a request is about; of a rule, that of its subscription.
func (a adminRequest) path() string {
	if a.kind == adminSubscription || a.kind == adminRule {
		return lower(a.parent + subscriptionsInfix + a.name)
	}
	return lower(a.name)
}
