# SQLite 3.33 or later, on a local file system. Atomic: the check and the write are one transaction.
# `app.db` is the database, `nightly` names what is protected, by one lock.

# 1. Once.
sqlite3 -batch -bail app.db <<'SQL'
.timeout 10000
begin immediate;
create table if not exists fence (
    resource text primary key,
    lineage  text not null default '',
    token    integer not null default 0  -- the highest that was accepted; 0: none yet
);

-- Whoever writes says so here first, in the same transaction.
create view if not exists fence_writer as select resource, lineage, token from fence;
create trigger if not exists fence_writer_insert instead of insert on fence_writer begin
    select raise(abort, 'fence: no token or no lineage, see fenced run')
        where (new.token not glob '*[^0-9]*' and new.token glob '[1-9]*'
            and (length(new.token) < 19 or length(new.token) = 19 and new.token <= '9223372036854775807')
            and new.lineage not glob '*[^A-Za-z0-9._:-]*' and length(new.lineage) between 1 and 64) is not true;
    select raise(abort, 'fence: it has no row; if it never had one: insert into fence (resource) values (…)')
        where not exists (select 1 from fence where resource = new.resource);
    select raise(abort, 'fence: another lineage; if the store began afresh on purpose: update fence set token = 0')
        where exists (select 1 from fence where resource = new.resource and token > 0 and lineage <> new.lineage);
    select raise(abort, 'fence: the token is stale, a later one was accepted already')
        where exists (select 1 from fence where resource = new.resource and token > cast(new.token as integer));
    update fence set lineage = new.lineage, token = cast(new.token as integer) where resource = new.resource;
end;

insert or ignore into fence (resource) values ('nightly');
commit;
SQL

# nightly.sql is what the job writes, without begin, commit and rollback. Without -bail the write of a stale holder
# would go through.
cat >nightly.sh <<'SH'
job=$(cat nightly.sql) && sqlite3 -batch -bail app.db <<SQL
.timeout 10000
begin immediate;
insert into fence_writer values ('nightly', '$FENCED_LINEAGE', '$FENCED_TOKEN');
$job
commit;
SQL
SH

# 2. Each time.
fenced run --lock nightly -- sh nightly.sh

# 3. To start afresh, when the store of the lock has:
#     sqlite3 -bail app.db "update fence set token = 0 where resource = 'nightly'"
