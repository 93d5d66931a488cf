-- One app's budget in one tenant, shared by all processes; the twin of budget_book.py.
--
-- KEYS  1 book (hash), 2 line of those who wait (hash), 3 spent (hash), 4 members (sorted set)
-- ARGV  1 operation, 2 now in ms (empty: this server's clock), 3 member, 4 units per ms,
--       5 burst, 6 share, 7 units of a day, 8 ms for which the caller knows the gate closed,
--       9 units spent while this server was away, then what the operation wants.
local book, line, spent, members = KEYS[1], KEYS[2], KEYS[3], KEYS[4]
local op, now, member = ARGV[1], tonumber(ARGV[2]), ARGV[3]
local rate, burst, share = tonumber(ARGV[4]), tonumber(ARGV[5]), tonumber(ARGV[6])
local per_day, remembered, elsewhere = tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9])

local SLOT, SLOTS, HOUR, HOURS = 5000, 12, 3600000, 25
local GRACE, LONGEST_CLOSURE = 250, 3600000
local MEMBER_MS, FIRST_TOKENS, MOST_CREDIT = 90000, 5, 10
local FIRST_GUESS, LAST_GUESS = 5000, 120000
local GUARANTEED = {[1] = 1 / 4, [2] = 1 / 8, [3] = 1 / 16}
local DAY_PART = {[0] = 1, [1] = 1, [2] = 0.9, [3] = 0.8}

if not now then
  local time = redis.call('TIME')
  now = tonumber(time[1]) * 1000 + math.floor(tonumber(time[2]) / 1000)
end

local s = {}
local raw = redis.call('HGETALL', book)
for i = 1, #raw, 2 do s[raw[i]] = tonumber(raw[i + 1]) end
s.born = s.born or now
s.at, s.opens, s.since, s.guesses = s.at or now, s.opens or 0, s.since or 0, s.guesses or 0
s.limit, s.limit_until = s.limit or 0, s.limit_until or 0
s.left, s.left_until = s.left or 0, s.left_until or 0
-- After this server was emptied nobody knows what was spent: enough for one request of any kind.
s.tokens = s.tokens or math.min(burst, FIRST_TOKENS)
-- A clock that was set back must neither close the gate for long nor stop the refill.
s.opens = math.min(s.opens, now + LONGEST_CLOSURE)
if s.at > now and s.at > s.opens then s.at = now end

local function close_until(instant)
  if instant > s.opens then s.opens = instant end
  if s.since == 0 then s.since = now end
  s.tokens = math.min(s.tokens, 0)
  s.at = math.max(s.at, s.opens)
end

-- The caller's memory is late by the way of an answer; only more than that is news.
if remembered > 0 and now + remembered > s.opens + 1000 then
  close_until(now + math.min(remembered, LONGEST_CLOSURE))
end

local function pace()
  local found = rate
  if s.limit_until > now then found = math.min(found, s.limit * share / 60000) end
  if s.left_until > now then
    found = math.min(found, math.max(s.left, 0) / (s.left_until - now))
  end
  return found
end

local function refill()
  -- What was left of a window is spent from that window; nothing of it is earned again.
  if s.left_until > s.at and s.left_until <= now then s.at = s.left_until end
  if now > s.at then
    s.tokens = math.min(burst, s.tokens + (now - s.at) * pace())
    s.at = now
  end
  if s.left_until > now then s.tokens = math.min(s.tokens, math.max(s.left, 0)) end
end

local function spend(units)
  if units <= 0 then return end
  local fresh = false
  for _, name in ipairs({'m' .. math.floor(now / SLOT), 'h' .. math.floor(now / HOUR)}) do
    if redis.call('HINCRBY', spent, name, units) == units then fresh = true end
  end
  redis.call('PEXPIRE', spent, (HOURS + 1) * HOUR)
  if not fresh then return end
  for _, name in ipairs(redis.call('HKEYS', spent)) do
    local slot = tonumber(string.sub(name, 2))
    if string.sub(name, 1, 1) == 'm' then
      if slot <= math.floor(now / SLOT) - SLOTS then redis.call('HDEL', spent, name) end
    elseif slot <= math.floor(now / HOUR) - HOURS then
      redis.call('HDEL', spent, name)
    end
  end
end

local function used()
  local minute, day, oldest = 0, 0, nil
  local all = redis.call('HGETALL', spent)
  for i = 1, #all, 2 do
    local slot, units = tonumber(string.sub(all[i], 2)), tonumber(all[i + 1])
    if string.sub(all[i], 1, 1) == 'm' then
      if slot > math.floor(now / SLOT) - SLOTS then minute = minute + units end
    elseif slot > math.floor(now / HOUR) - HOURS then
      day = day + units
      if oldest == nil or slot < oldest then oldest = slot end
    end
  end
  return minute, day, oldest
end

local function waiting()
  local found = {}
  local all = redis.call('HGETALL', line)
  for i = 1, #all, 2 do
    local lane, cost, since, due, count = string.match(all[i + 1], '^(%d+) (%d+) (%d+) (%d+) (%d+)$')
    -- Whoever does not come back in time ended, or is busy: the others go past.
    if now > tonumber(due) + GRACE then
      redis.call('HDEL', line, all[i])
    else
      found[#found + 1] = {
        name = all[i], lane = tonumber(lane), cost = tonumber(cost),
        since = tonumber(since), count = tonumber(count),
      }
    end
  end
  return found
end

local function before(a, b)
  if a.since ~= b.since then return a.since < b.since end
  return a.name < b.name
end

local function ask(name, lane, cost, since, count)
  if s.opens > now then
    redis.call('HDEL', line, name)
    return 0, s.opens - now, 'closed', since
  end
  local _, day, oldest = used()
  if day + cost > per_day * DAY_PART[lane] then
    redis.call('HDEL', line, name)
    return 0, math.max(1, ((oldest or 0) + HOURS) * HOUR - now), 'day', since
  end
  if s.left_until > now and s.left < cost then
    redis.call('HDEL', line, name)
    return 0, s.left_until - now, 'closed', since
  end
  local me = {name = name, lane = lane, cost = cost, since = since}
  local heads, top, others = {}, lane, {}
  for _, one in ipairs(waiting()) do
    if one.name ~= name then others[#others + 1] = one end
  end
  others[#others + 1] = me
  for _, one in ipairs(others) do
    if heads[one.lane] == nil or before(one, heads[one.lane]) then heads[one.lane] = one end
    if one.lane < top then top = one.lane end
  end
  local first = nil
  for each = 1, 3 do
    local head, credit = heads[each], s['c' .. each] or 0
    if head and each > top and credit >= head.cost then
      if first == nil or credit > (s['c' .. first.lane] or 0) then first = head end
    end
  end
  local ahead = 0
  if first ~= me then
    for _, one in ipairs(others) do
      local is_ahead = one == first or one.lane < lane or (one.lane == lane and before(one, me))
      if one ~= me and is_ahead then ahead = ahead + one.cost end
    end
  end
  -- Sums of fractions differ in their last digit.
  local missing = ahead + math.min(cost, burst) - s.tokens - 1e-6
  if missing <= 0 then
    redis.call('HDEL', line, name)
    s.tokens, s.left = s.tokens - cost, s.left - cost
    spend(cost)
    if lane > top then s['c' .. lane] = math.max(0, (s['c' .. lane] or 0) - cost) end
    for each = lane + 1, 3 do
      if heads[each] then
        s['c' .. each] = math.min(MOST_CREDIT, (s['c' .. each] or 0) + cost * GUARANTEED[each])
      end
    end
    return 1, 0, 'go', since
  end
  local speed = pace()
  local wait = 1000
  if speed > 0 then wait = math.max(1, math.min(1000, math.ceil(missing / speed))) end
  redis.call(
    'HSET', line, name, string.format('%d %d %d %d %d', lane, cost, since, now + wait, count)
  )
  redis.call('PEXPIRE', line, 60000)
  return 0, wait, 'line', since
end

refill()
spend(elsewhere)
local go, wait, why, since = 0, 0, '', 0
if op == 'ask' then
  redis.call('ZADD', members, now, member)
  redis.call('ZREMRANGEBYSCORE', members, '-inf', now - MEMBER_MS)
  redis.call('PEXPIRE', members, 2 * MEMBER_MS)
  since = tonumber(ARGV[13])
  if since == 0 or since > now then since = now end
  go, wait, why, since = ask(ARGV[10], tonumber(ARGV[11]), tonumber(ARGV[12]), since, ARGV[14])
elseif op == 'leave' then
  redis.call('HDEL', line, ARGV[10])
elseif op == 'close' then
  local told = tonumber(ARGV[10])
  if told then
    close_until(now + math.min(told, LONGEST_CLOSURE))
  elseif s.opens <= now then
    -- Only the first of several refusals in flight counts as a new guess.
    local guess = math.min(FIRST_GUESS * 2 ^ s.guesses, LAST_GUESS)
    s.guesses = math.min(s.guesses + 1, 30)
    close_until(now + math.floor(guess * (0.5 + tonumber(ARGV[11]) / 2)))
  end
elseif op == 'passed' then
  if s.opens <= now then s.guesses, s.since = 0, 0 end
  local limit, left, reset = tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12])
  if limit then
    if limit > 0 then s.limit, s.limit_until = limit, now + HOUR end
    if reset > 0 then
      left = left - math.max(5, math.floor(limit * 0.02))
      -- The same window told of by several answers: the least is the latest.
      if s.left_until > now and math.abs(now + reset - s.left_until) <= 2000 then
        left = math.min(left, s.left)
      end
      s.left, s.left_until = left, now + reset
    end
  end
end

if op ~= 'look' then
  local fields = {}
  for name, value in pairs(s) do
    fields[#fields + 1] = name
    fields[#fields + 1] = string.format('%.14g', value)
  end
  redis.call('HSET', book, unpack(fields))
  redis.call('PEXPIRE', book, 2 * HOUR)
end

local closed = math.max(0, s.opens - now)
local throttled = 0
if s.since > 0 then throttled = math.max(1, now - s.since) end
local minute, day, counts = 0, 0, {[0] = 0, [1] = 0, [2] = 0, [3] = 0}
if op == 'look' then
  minute, day = used()
  for _, one in ipairs(waiting()) do counts[one.lane] = counts[one.lane] + one.count end
end
return {
  go, wait, why, since, closed, throttled, redis.call('ZCARD', members),
  math.max(0, now - s.born), minute, day, counts[0], counts[1], counts[2], counts[3],
}
