-- What wrk sends in the scenario json.
wrk.method = "POST"
wrk.headers["content-type"] = "application/json"
wrk.body = '{"customer":"ada","items":[{"name":"pen","count":3,"cents":120},{"name":"ink","count":1,"cents":480},{"name":"paper","count":500,"cents":2}]}'
