// SPDX-License-Identifier: Apache-2.0

package jsonrpc

// readFast reads a body of the usual shape in one pass: a request object, or
// an array of them, with members from the specification only, plain ASCII
// strings and params that are an array of scalars. It declines everything
// else, right or wrong; what it accepts it reads as readCarefully does.
func (x *exchange) readFast(body []byte) (form, bool) {
	p := fastParser{body: body}
	p.skipSpace()
	if p.peek() != '[' {
		return single, p.message(x.add()) && p.atEnd()
	}
	p.pos++
	for range x.server.options.MaxBatch {
		p.skipSpace()
		if !p.message(x.add()) {
			return malformed, false
		}
		p.skipSpace()
		switch p.next() {
		case ',':
		case ']':
			return batch, p.atEnd()
		default:
			return malformed, false
		}
	}
	return malformed, false
}

// A fastParser walks over body. Its methods return false to decline.
type fastParser struct {
	body []byte
	pos  int
}

// message reads one request object into m, which is zero.
func (p *fastParser) message(m *message) bool {
	if p.next() != '{' {
		return false
	}
	version := false
	for {
		p.skipSpace()
		name, ok := p.text()
		if !ok {
			return false
		}
		p.skipSpace()
		if p.next() != ':' {
			return false
		}
		p.skipSpace()
		if string(name) == "jsonrpc" {
			text, ok := p.text()
			if !ok || version || string(text) != "2.0" {
				return false
			}
			version = true
		} else if !p.member(m, name) {
			return false
		}
		p.skipSpace()
		switch p.next() {
		case ',':
		case '}':
			return version && m.method != nil
		default:
			return false
		}
	}
}

// member reads the value of one of the members that m keeps.
func (p *fastParser) member(m *message, name []byte) bool {
	start := p.pos
	switch string(name) {
	case "id":
		c := p.peek()
		if m.id != nil || c == 't' || c == 'f' || !p.scalar() {
			return false
		}
		m.id = p.body[start:p.pos]
	case "method":
		text, ok := p.text()
		if m.method != nil || !ok || len(text) == 0 || len(text) > maxMethod {
			return false
		}
		m.method = text
	case "params":
		if m.params != nil || !p.scalars() {
			return false
		}
		m.params = p.body[start:p.pos]
	default:
		return false
	}
	return true
}

// scalars passes over an array of scalars.
func (p *fastParser) scalars() bool {
	if p.next() != '[' {
		return false
	}
	p.skipSpace()
	if p.peek() == ']' {
		p.pos++
		return true
	}
	for {
		p.skipSpace()
		if !p.scalar() {
			return false
		}
		p.skipSpace()
		switch p.next() {
		case ',':
		case ']':
			return true
		default:
			return false
		}
	}
}

// scalar passes over a plain string, an integer or a literal.
func (p *fastParser) scalar() bool {
	switch p.peek() {
	case '"':
		_, ok := p.text()
		return ok
	case 't':
		return p.literal("true")
	case 'f':
		return p.literal("false")
	case 'n':
		return p.literal("null")
	}
	return p.integer()
}

// text passes over a string and returns what is between its quotes. Escapes
// and anything but printable ASCII are for the careful parser.
func (p *fastParser) text() ([]byte, bool) {
	if p.next() != '"' {
		return nil, false
	}
	start := p.pos
	for i, c := range p.body[start:] {
		if plain[c] {
			continue
		}
		p.pos = start + i + 1
		return p.body[start : start+i], c == '"'
	}
	return nil, false
}

// plain are the characters that stand for themselves in a string. A table is
// what makes most of the speed here.
var plain = func() (table [256]bool) {
	for c := byte(' '); c < 0x80; c++ {
		table[c] = c != '"' && c != '\\'
	}
	return table
}()

// integer passes over a number without fraction and exponent. Where it has
// one, the character that follows is not what the caller expects.
func (p *fastParser) integer() bool {
	if p.peek() == '-' {
		p.pos++
	}
	if p.peek() == '0' {
		p.pos++
		return true
	}
	start := p.pos
	for isDigit(p.peek()) {
		p.pos++
	}
	return p.pos > start
}

func (p *fastParser) literal(word string) bool {
	end := p.pos + len(word)
	if end > len(p.body) || string(p.body[p.pos:end]) != word {
		return false
	}
	p.pos = end
	return true
}

func (p *fastParser) skipSpace() {
	for p.pos < len(p.body) && isSpace(p.body[p.pos]) {
		p.pos++
	}
}

// peek returns the next character, zero at the end.
func (p *fastParser) peek() byte {
	if p.pos < len(p.body) {
		return p.body[p.pos]
	}
	return 0
}

func (p *fastParser) next() byte {
	c := p.peek()
	p.pos++
	return c
}

func (p *fastParser) atEnd() bool {
	p.skipSpace()
	return p.pos == len(p.body)
}
