# S3, or a store with its conditional writes (section 1 tries them). Atomic for readers who go by the pointer.
# An ETag is a sum of the content: of the same content it is the same, whatever the metadata. So the token stands in the
# content of a small object, the pointer, which is replaced only if it is still the one that was read. Readers:
#     aws s3 cp "s3://$BUCKET/$(aws s3 cp "s3://$BUCKET/report.json.current" - | cut -d" " -f3)" report.json

# 1. Once. BUCKET is the bucket. A store that ignores conditions would let everybody write: that is tried first.
cat >s3-init.sh <<'SH'
set -eu
put() { aws s3api put-object --bucket "$BUCKET" --key "$@" >/dev/null; }
none=$(mktemp)
trap 'rm -f "$none"' EXIT
echo 'none 0 none' >"$none"
put "$1.probe" --body "$none"
if put "$1.probe" --body "$none" --if-none-match '*' 2>/dev/null ||
    put "$1.probe" --body "$none" --if-match '"0123456789abcdef0123456789abcdef"' 2>/dev/null; then
    echo "s3://$BUCKET: the store ignores conditions, so nothing can be protected there" >&2
    exit 1
fi
put "$1.current" --body "$none" --if-none-match '*'
SH
sh s3-init.sh report.json

cat >s3-put.sh <<'SH'
# s3-put.sh FILE KEY: uploads FILE under a name of its own, then has KEY.current point to it, if the token is accepted.
set -eu
refuse() { echo "s3://$BUCKET/$2.current: $1" >&2; exit 77; }
case ${FENCED_TOKEN-} in '' | 0* | *[!0-9]*) refuse 'no token, see fenced run' "$2" ;; esac
[ "$FENCED_TOKEN" -gt 0 ] 2>/dev/null || refuse 'no token, it is above 2^63-1' "$2"
case ${FENCED_LINEAGE-} in '' | *[!A-Za-z0-9._:-]*) refuse 'no lineage, see fenced run' "$2" ;; esac
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
version=$2.$FENCED_TOKEN.$(basename "$work")
while :; do
    # An error here is no missing token: s3-init.sh makes a pointer that never was.
    etag=$(aws s3api get-object --bucket "$BUCKET" --key "$2.current" "$work/known" \
        --query ETag --output text)
    read -r lineage token _ <"$work/known"
    [ "$token" -ge 0 ] 2>/dev/null || refuse 'it is damaged' "$2"
    if [ "$token" != 0 ] && [ "$lineage" != "$FENCED_LINEAGE" ]; then
        refuse "lineage $FENCED_LINEAGE is not $lineage; if that is meant: delete it, then s3-init.sh" "$2"
    fi
    if [ "$FENCED_TOKEN" -lt "$token" ]; then
        refuse "token $FENCED_TOKEN is stale, $token was accepted already" "$2"
    fi
    if [ ! -e "$work/next" ]; then
        aws s3api put-object --bucket "$BUCKET" --key "$version" --body "$1" --if-none-match '*' >/dev/null
        echo "$FENCED_LINEAGE $FENCED_TOKEN $version" >"$work/next"
    fi
    if aws s3api put-object --bucket "$BUCKET" --key "$2.current" --body "$work/next" --if-match "$etag" \
        --metadata "fenced-lineage=$FENCED_LINEAGE,fenced-token=$FENCED_TOKEN" >/dev/null 2>"$work/why"; then
        exit 0
    fi
    # Somebody else was faster: look again. Anything else is an error.
    if ! grep -qE '\((PreconditionFailed|ConditionalRequestConflict|412|409)\)' "$work/why"; then
        cat "$work/why" >&2
        exit 1
    fi
done
SH

# 2. Each time.
fenced run --lock nightly -- sh s3-put.sh report.json report.json

# 3. To start afresh, when the store of the lock has: delete the pointer, then `sh s3-init.sh report.json` again.
#     aws s3api delete-object --bucket "$BUCKET" --key report.json.current
