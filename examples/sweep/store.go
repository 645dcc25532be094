package main

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	rows       = 10_000 // of the table world
	maxQueries = 500
	poolSize   = "24" // connections to the database, of each copy
)

// world is a row of the table of that name.
type world struct {
	ID           int32 `json:"id"`
	RandomNumber int32 `json:"randomNumber"`
}

type fortune struct {
	ID      int32
	Message string
}

// store asks the database. Every statement is prepared once a connection.
type store struct{ pool *pgxpool.Pool }

func openStore(ctx context.Context, url string) (*store, error) {
	sep := "?"
	if strings.Contains(url, "?") {
		sep = "&"
	}
	pool, err := pgxpool.New(ctx, url+sep+"pool_max_conns="+poolSize)
	if err != nil {
		return nil, err
	}
	return &store{pool}, pool.Ping(ctx)
}

const selectWorld = "SELECT id, randomnumber FROM world WHERE id = $1"

// one reads a row at random.
func (s *store) one(ctx context.Context) (w world, err error) {
	err = s.pool.QueryRow(ctx, selectWorld, 1+rand.Int32N(rows)).Scan(&w.ID, &w.RandomNumber)
	return w, err
}

// some reads n rows at random, by as many queries.
func (s *store) some(ctx context.Context, n int) ([]world, error) {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Release()
	return readWorlds(ctx, c.Conn(), n)
}

func readWorlds(ctx context.Context, c *pgx.Conn, n int) ([]world, error) {
	out := make([]world, n)
	for i := range out {
		if err := c.QueryRow(ctx, selectWorld, 1+rand.Int32N(rows)).Scan(&out[i].ID, &out[i].RandomNumber); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// update reads n rows at random, gives each a new number, and writes them in
// the order of their ids, so that two requests never wait for each other in
// a circle.
func (s *store) update(ctx context.Context, n int) ([]world, error) {
	c, err := s.pool.Acquire(ctx)
	if err != nil {
		return nil, err
	}
	defer c.Release()
	out, err := readWorlds(ctx, c.Conn(), n)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(out, func(a, b world) int { return int(a.ID - b.ID) })
	var batch pgx.Batch
	for i := range out {
		out[i].RandomNumber = 1 + rand.Int32N(rows)
		batch.Queue("UPDATE world SET randomnumber = $2 WHERE id = $1", out[i].ID, out[i].RandomNumber)
	}
	return out, c.SendBatch(ctx, &batch).Close()
}

// fortunes reads all fortunes, adds one, and sorts them by their text.
func (s *store) fortunes(ctx context.Context) ([]fortune, error) {
	found, err := s.pool.Query(ctx, "SELECT id, message FROM fortune")
	if err != nil {
		return nil, err
	}
	all, err := pgx.CollectRows(found, pgx.RowToStructByPos[fortune])
	if err != nil {
		return nil, err
	}
	all = append(all, fortune{Message: "Additional fortune added at request time."})
	slices.SortFunc(all, func(a, b fortune) int { return strings.Compare(a.Message, b.Message) })
	return all, nil
}
