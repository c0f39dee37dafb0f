# PostgreSQL 11 or later. Atomic: the check and the write are one transaction.
# The server is found by PGHOST, PGDATABASE and their like. `nightly` names what is protected, by one lock.

# 1. Once.
psql -X -q -1 -v ON_ERROR_STOP=1 <<'SQL'
create table if not exists fence (
    resource text primary key,
    lineage  text not null default '',
    token    bigint not null default 0  -- the highest that was accepted; 0: none yet
);

-- Locks the row until the transaction ends, so that nobody overtakes.
create or replace procedure fence(of_resource text, of_lineage text, of_token text) language plpgsql as $$
declare
    known fence%rowtype;
begin
    if (of_token ~ '^[1-9][0-9]{0,18}$' and of_lineage ~ '^[A-Za-z0-9._:-]{1,64}$') is not true then
        raise exception 'fence %: "%" is no token or "%" no lineage, see fenced run', of_resource, of_token, of_lineage;
    end if;
    select * into known from fence where resource = of_resource for update;
    if not found then
        raise exception 'fence %: it has no row; if it never had one: insert into fence values (''%'')',
            of_resource, of_resource;
    elsif known.token > 0 and known.lineage <> of_lineage then
        raise exception 'fence %: lineage % is not %, so tokens cannot be compared; if the store began afresh on '
            'purpose: update fence set token = 0 where resource = ''%''',
            of_resource, of_lineage, known.lineage, of_resource;
    elsif of_token::bigint < known.token then
        raise exception 'fence %: token % is stale, % was accepted already', of_resource, of_token, known.token;
    end if;
    update fence set lineage = of_lineage, token = of_token::bigint where resource = of_resource;
end $$;

insert into fence values ('nightly') on conflict do nothing;
SQL

cat >fence.sql <<'SQL'
call fence('nightly', :'lineage', :'token');
SQL

# 2. Each time. nightly.sql is what the job writes, without begin, commit and rollback. Without -1 and ON_ERROR_STOP the
# write of a stale holder would go through, with exit status 0.
fenced run --lock nightly -- sh -c 'psql -X -q -1 -v ON_ERROR_STOP=1 \
    -v lineage="$FENCED_LINEAGE" -v token="$FENCED_TOKEN" -f fence.sql -f nightly.sql'

# 3. To start afresh, when the store of the lock has:
#     psql -X -v ON_ERROR_STOP=1 -c "update fence set token = 0 where resource = 'nightly'"
