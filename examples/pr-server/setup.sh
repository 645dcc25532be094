#!/bin/sh
# Makes repo/, the repository whose pull request is benchmarked: the server on
# main, and on the branch pr, which is checked out, a commit that makes one of
# its routes slower. What it makes is the same everywhere, hashes included.
set -eu
cd "$(dirname "$0")"
rm -rf repo
mkdir repo
export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export GIT_AUTHOR_NAME=Ada GIT_AUTHOR_EMAIL=ada@example.com GIT_AUTHOR_DATE=2026-01-01T00:00:00Z
export GIT_COMMITTER_NAME=Ada GIT_COMMITTER_EMAIL=ada@example.com GIT_COMMITTER_DATE=2026-01-01T00:00:00Z

cp server/* server/.npmrc repo/
echo node_modules/ > repo/.gitignore
git -C repo -c init.defaultBranch=main init -q
git -C repo add -A
git -C repo commit -q -m 'a small server'
git -C repo checkout -q -b pr
cp change/* repo/
git -C repo commit -q -a -m 'keep the last order'
git -C repo log --oneline --decorate
