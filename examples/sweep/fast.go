package main

import "github.com/valyala/fasthttp"

// serveFastHTTP answers with fasthttp.
func serveFastHTTP(addr string, s *store) error {
	srv := &fasthttp.Server{Name: server, Handler: func(ctx *fasthttp.RequestCtx) { answer(ctx, s) }}
	return srv.ListenAndServe(addr)
}

func answer(ctx *fasthttp.RequestCtx, s *store) {
	count := func() int { return queries(string(ctx.QueryArgs().Peek("queries"))) }
	switch string(ctx.Path()) {
	case "/plaintext":
		reply(ctx, plain, []byte(plaintext), nil)
	case "/json":
		reply(ctx, jsonType, hello(), nil)
	case "/db":
		row, err := s.one(ctx)
		reply(ctx, jsonType, toJSON(row), err)
	case "/queries":
		found, err := s.some(ctx, count())
		reply(ctx, jsonType, toJSON(found), err)
	case "/updates":
		found, err := s.update(ctx, count())
		reply(ctx, jsonType, toJSON(found), err)
	case "/fortunes":
		all, err := s.fortunes(ctx)
		reply(ctx, htmlType, page(all), err)
	default:
		ctx.NotFound()
	}
}

func reply(ctx *fasthttp.RequestCtx, contentType string, body []byte, err error) {
	if err != nil {
		ctx.Error(err.Error(), fasthttp.StatusInternalServerError)
		return
	}
	ctx.SetContentType(contentType)
	ctx.SetBody(body)
}
