package spec

// Expect is a compiled response check, such as `status == 200`.
type Expect struct {
	Source string
}

// Gate is a compiled threshold expression, such as `worse > noise`.
type Gate struct {
	Source string
}
