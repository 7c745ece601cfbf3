#!/bin/sh
# Every link of the documents leads somewhere, and who is new finds the answers in the guide by following links from README.
. "$1/cli/lib.sh"
python3 "$1/cli/guide.py" "$repository" >out 2>err || fail "the guide"
finish
