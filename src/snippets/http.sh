# An HTTP service of your own. As good as what stands behind it: atomic if the service checks and writes in one
# transaction.

# 1. Once, in the service, for every request that writes. One of the other snippets is the transaction.
#   - Fencing-Token and Fencing-Lineage are missing or no words of fenced's  ->  428, nothing is written
#   - there is no fence for this resource                                    ->  412, nothing is written
#   - the fence is of another lineage, or its token is higher                ->  412, nothing is written
#   - else remember token and lineage and write, in one transaction          ->  2xx
# Tokens go up to 2^63-1: not through a JSON number or a double.

# 2. Each time. Without -f the client exits 0 on 412; a redirection (3xx) is no error to it, so the status is looked at.
# -T and not -d @report.json, which sends nothing and succeeds when there is no such file.
fenced run --lock nightly -- sh -c '
    status=$(curl -fsS -o /dev/null -w "%{http_code}" -T report.json \
        -H "Fencing-Token: $FENCED_TOKEN" -H "Fencing-Lineage: $FENCED_LINEAGE" "$REPORT_URL") || exit
    case $status in 2??) ;; *) echo "not written: HTTP status $status" >&2; exit 77 ;; esac'
