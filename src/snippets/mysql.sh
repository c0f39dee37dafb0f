# MySQL 8 or MariaDB 10.5, or later. Atomic for InnoDB tables: the check and the write are one transaction.
# The server is found by ~/.my.cnf; `app` is the database, `nightly` names what is protected, by one lock.

# 1. Once.
mysql --batch app <<'SQL'
create table if not exists fence (
    resource varchar(64) primary key,
    lineage  varchar(64) character set ascii collate ascii_bin not null default '',
    token    bigint unsigned not null default 0  -- the highest that was accepted; 0: none yet
) engine = InnoDB;

drop procedure if exists fence;
delimiter //
-- Locks the row until the transaction ends, so that nobody overtakes.
create procedure fence(of_resource varchar(64), of_lineage varchar(100) character set ascii collate ascii_bin,
    of_token varchar(100))
begin
    declare why varchar(256);
    declare known_lineage varchar(64) character set ascii collate ascii_bin;
    declare known_token bigint unsigned;
    if not coalesce(of_token regexp '^[1-9][0-9]{0,18}$' and cast(of_token as unsigned) <= 9223372036854775807
        and of_lineage regexp '^[A-Za-z0-9._:-]{1,64}$', false) then
        signal sqlstate '45000' set message_text = 'fence: no token or no lineage, see fenced run';
    end if;
    select lineage, token into known_lineage, known_token from fence where resource = of_resource for update;
    if known_token is null then
        set why = 'no row; if it never had one: insert into fence (resource) values (…)';
    elseif known_token > 0 and known_lineage <> of_lineage then
        set why = 'another lineage; if the store began afresh on purpose: update fence set token = 0 where …';
    elseif cast(of_token as unsigned) < known_token then
        set why = concat('token ', of_token, ' is stale, ', known_token, ' was accepted already');
    end if;
    if why is not null then
        set why = left(concat('fence ', of_resource, ': ', why), 128);
        signal sqlstate '45000' set message_text = why;
    end if;
    update fence set lineage = of_lineage, token = of_token where resource = of_resource;
end //
delimiter ;

insert ignore into fence (resource) values ('nightly');
SQL

# 2. Each time. nightly.sql is what the job writes, without start transaction, commit and rollback, and without create
# and alter table, which commit. Not by `source`: after an error in the file the client goes on, commits, and exits 0.
# Not with --force, and not with a reconnection, after which the rest would be written without the check.
fenced run --lock nightly -- sh -c 'job=$(cat nightly.sql) && mysql --batch --skip-reconnect app <<SQL
start transaction;
call fence("nightly", "$FENCED_LINEAGE", "$FENCED_TOKEN");
$job
commit;
SQL'

# 3. To start afresh, when the store of the lock has:
#     mysql --batch app -e "update fence set token = 0 where resource = 'nightly'"
