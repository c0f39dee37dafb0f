# Redis 7 or Valkey, or later. Atomic: a script is one step. What Redis forgets in a crash or a failover is forgotten of
# the fence as of the data (appendonly yes and appendfsync always: nothing, of one server).
# The braces put both keys into one slot of a cluster; `nightly` names what is protected, by one lock.

# 1. Once. Tokens are compared as text: a number of Lua's cannot tell 2^53+1 from 2^53.
cat >fence.lua <<'LUA'
-- KEYS: the fence, what is written. ARGV: token, lineage, value.
local fence, token, lineage = KEYS[1], ARGV[1], ARGV[2]
local function is_lower(a, b)
    return #a < #b or (#a == #b and a < b)
end
if not token:match('^[1-9]%d*$') or is_lower('9223372036854775807', token)
    or not lineage:match('^[%w._:-]+$') or #lineage > 64 then
    return redis.error_reply('FENCE ' .. fence .. ': no token or no lineage, see fenced run')
end
local known = redis.call('HMGET', fence, 'token', 'lineage')
if not known[1] then
    return redis.error_reply('FENCE ' .. fence .. ': it is not there; if it never was: HSET ' .. fence .. ' token 0')
end
if known[1] ~= '0' then
    if known[2] ~= lineage then
        return redis.error_reply('FENCE ' .. fence .. ': lineage ' .. lineage .. ' is not ' .. tostring(known[2])
            .. ', so tokens cannot be compared; if the store began afresh on purpose: HSET ' .. fence .. ' token 0')
    elseif is_lower(token, known[1]) then
        return redis.error_reply('FENCE ' .. fence .. ': token ' .. token .. ' is stale, ' .. known[1]
            .. ' was accepted already')
    end
end
redis.call('HSET', fence, 'token', token, 'lineage', lineage)
return redis.call('SET', KEYS[2], ARGV[3])
LUA
redis-cli -u "${REDIS_URL:-redis://127.0.0.1:6379}" -e HSETNX '{nightly}:fence' token 0

# 2. Each time. Without -e the client exits 0 when the script refused. In a cluster with -c. The value is an argument:
# text, at most 128 KB.
fenced run --lock nightly -- sh -c 'report=$(cat report.json) &&
    redis-cli -u "${REDIS_URL:-redis://127.0.0.1:6379}" -e --eval fence.lua \
        "{nightly}:fence" "{nightly}:report" , "$FENCED_TOKEN" "$FENCED_LINEAGE" "$report"'

# 3. To start afresh, when the store of the lock has:
#     redis-cli -u "${REDIS_URL:-redis://127.0.0.1:6379}" -e HSET '{nightly}:fence' token 0
