# etcd 3.4 or later. Atomic: a transaction compares and writes. The cluster is found by ETCDCTL_ENDPOINTS and its like.
# report.txt is what is written: one line without quotation marks and backslashes.

# A. The lock is kept in the same cluster: nothing to install. The token is the create_revision of the lock's own key,
# so what the transaction asks is whether this run holds the lock now. etcdctl prints FAILURE and exits 0: it is read.
fenced run --store etcd: --lock nightly -- sh -c '
    report=$(cat report.txt) || exit
    printf "%s\n" "create(\"$FENCED_KEY\") = \"$FENCED_TOKEN\"" "" "put app/report \"$report\"" "" "" |
        etcdctl txn | {
            read -r verdict
            [ "$verdict" = SUCCESS ] || { echo "etcdctl txn: ${verdict:-no answer}" >&2; exit 77; }
        }'

# B. The lock is kept elsewhere: a key for the fence. `nightly` names what is protected, by one lock.

# 1. Once: the lineage, and the token with 20 digits, since etcd compares bytes, and "9" is more than "40". Refused when
# the key is there already.
fenced run --lock nightly -- sh -c '
    fence="${FENCED_LINEAGE:?} $(printf %020d 0)"
    printf "%s\n" "create(\"fence/nightly\") = \"0\"" "" "put fence/nightly \"$fence\"" "" "" |
        etcdctl txn | {
            read -r verdict
            [ "$verdict" = SUCCESS ] || { echo "etcdctl txn: ${verdict:-no answer}" >&2; exit 77; }
        }'

# 2. Each time. Written if the key is there, begins with this lineage, and has no higher token.
fenced run --lock nightly -- sh -c '
    case $FENCED_TOKEN in "" | 0* | *[!0-9]*) echo "no token, see fenced run" >&2; exit 77 ;; esac
    fence="${FENCED_LINEAGE:?} $(printf %020d "$FENCED_TOKEN")" && report=$(cat report.txt) || exit
    printf "%s\n" "value(\"fence/nightly\") > \"$FENCED_LINEAGE \"" "value(\"fence/nightly\") < \"$fence.\"" "" \
        "put fence/nightly \"$fence\"" "put app/report \"$report\"" "" "get fence/nightly" "" |
        etcdctl txn | {
            read -r verdict
            [ "$verdict" = SUCCESS ] && exit
            echo "etcdctl txn: ${verdict:-no answer}; $fence is stale or of another lineage, if there is" >&2
            cat >&2
            exit 77
        }'

# 3. To start afresh, when the store of the lock has: delete the key, then 1. again.
#     etcdctl del fence/nightly
