// SPDX-License-Identifier: Apache-2.0

package jsonrpc

// maxMethod is how long the name of a method may be, decoded.
const maxMethod = 2048

// A message is one element of a request body as it was read: a call, a
// notification, or something that is neither. Its slices are parts of the
// body, but for a method that was written with escapes.
type message struct {
	id     []byte // as written; nil where it is absent or unusable
	method []byte // decoded
	params []byte // as written; nil where absent
	fault  *Error // why this is neither a call nor a notification, else nil
}

func (m *message) isCall() bool         { return m.fault == nil && m.id != nil }
func (m *message) isNotification() bool { return m.fault == nil && m.id == nil }

// arguments returns the params of m; ok is false where they are neither an
// array nor absent.
func (m *message) arguments() (args Values, ok bool) {
	if m.params == nil || Value(m.params).IsNull() {
		return Values{}, true
	}
	return Value(m.params).Elements()
}

// readMessage reads one element of a body that is known to be valid JSON. An
// id that can be told is kept even where the rest is at fault, since most
// clients cannot match an answer without it.
func readMessage(element Value) message {
	if !element.IsObject() {
		return message{fault: errNotObject}
	}
	e := readEnvelope(element)
	name, nameOK := readMethod(e.method)
	switch {
	case e.idTwice:
		return message{fault: errDuplicate}
	case e.id != nil && !isID(e.id):
		return message{fault: errID}
	case e.otherTwice:
		return message{id: e.id, fault: errDuplicate}
	case !isVersion2(e.version):
		return message{id: e.id, fault: errVersion}
	case !nameOK:
		return message{id: e.id, fault: errMethod}
	}
	return message{id: e.id, method: name, params: e.params}
}

// An envelope holds the members of an object that the specification names,
// nil where absent, and whether one of them came twice.
type envelope struct {
	version, id, method, params Value
	idTwice, otherTwice         bool
}

func readEnvelope(object Value) (e envelope) {
	rest := members{rest: object[1:]}
	for {
		name, v, ok := rest.next()
		if !ok {
			return e
		}
		member, twice := (*Value)(nil), &e.otherTwice
		switch string(name) {
		case "jsonrpc":
			member = &e.version
		case "id":
			member, twice = &e.id, &e.idTwice
		case "method":
			member = &e.method
		case "params":
			member = &e.params
		default:
			continue
		}
		*twice = *twice || *member != nil
		*member = v
	}
}

func isVersion2(v Value) bool {
	text, ok := v.Text()
	return ok && string(text) == "2.0"
}

func isID(v Value) bool {
	c := v[0]
	return c == '"' || c == '-' || isDigit(c) || c == 'n'
}

// readMethod decodes the name of a method. An escape takes at most six bytes
// for one, so that much longer texts need not be decoded to be refused.
func readMethod(v Value) (name []byte, ok bool) {
	if len(v) > 6*maxMethod+2 {
		return nil, false
	}
	name, ok = v.Text()
	return name, ok && 0 < len(name) && len(name) <= maxMethod
}
