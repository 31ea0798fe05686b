-- The pools in the store: `Pools` over Redis keys, with the same names and results. Every script is this text followed by its
-- own. Times are milliseconds of the store; tests may pass their own time.
--
-- Invariant: after every script, no waiter remains that could be served. Messages for nodes are collected in `outbox` and
-- sent by `finish`, one message for each node; `out:<node>` keeps them until the node's next heartbeat acknowledges them.
--
-- A lease request (`lease_request`) is `D` (a share of the global limit), `P:<account>` (this account), `A` (any) or
-- `A:<account>,<account>` (any, these last; sorted). One with needs (`needs.lua`) has three words more, `-` for none: its models with `;`
-- between, each as its id, its name, until when its server takes no request for it, and whether the accounts that the request avoids do not serve it (1); what it reserves of budgets and, behind `;`, of
-- strict ones, each as tokens, units and nanos; and whether it leaves to others what upstreams reserve for them (1). Equal requests of a
-- node wait in one line, `line:<lease_request>|<node>`. `lines` has those whose first waiter may be served, by that waiter's number,
-- and `blocked` those that no free account suits, by the time at which one may.
--
-- `pools` has the pools by name, each as JSON; its other keys are behind `k`. `accounts` has the accounts by name, each as JSON without what
-- `NEW_ACCOUNT` says. `leases:<node>` has the leases of a node by their tickets, each as JSON: account (empty without one), fence, pool, the
-- number of the model that it serves, and what it has reserved of budgets.
--
-- `tickets:<node>` has the waiters of a node by their tickets, and `queue` those of all by number. A record is JSON: number, deadline, since,
-- style, spread, the preferred account, whether it holds at its first pool, the targets in order, and the refusal of the places that it has
-- given up. A target is a pool's name, the lease request there, and its state: `placed`, `parked` (the pool is skipped), `later` (once it is
-- widened) or `gone`. `several` has the waiters with other targets that have a place in the pool.
local INF = math.huge
-- Milliseconds after which one request tries an account whose upstream states a longer wait (`backOff.ts`).
local TRIED_AFTER = 3600000
-- Added to the time of an account that a request never suits (`poolQueue.ts`).
local NEVER = 2 ^ 45
-- Order of accounts: unused ones by arrival come first, those being cleaned up come last.
local NEVER_GIVEN, BEHIND_ALL = -2 ^ 40, 2 ^ 50
local ALIVE, DEAF = 5000, 2000
-- The least time for nodes to return to a server, and the distance of its new numbers from those that its data may lack.
local RETURN, DISTANCE = 1500, 2 ^ 20
-- Conversations that are known, and the longest that one is kept after its last turn.
local CONVERSATIONS, STICKY = 10000, 86400000
-- Windows of an account's quota that are kept, and how long after the last word about one.
local WINDOWS, QUOTA = 16, 2592000000

local now = tonumber(ARGV[1])
if now == nil then
  local time = call('TIME')
  now = time[1] * 1000 + math.floor(time[2] / 1000)
end
local me, incarnation = ARGV[2], ARGV[3]

local limits = call('HMGET', K .. 'lim', 'revision', 'total', 'budgets')
local revision = limits[1] or '0'
local counted = call('HMGET', K .. 'sum', 'given', 'numbered', 'arrived', 'stamped')
-- Counters of all pools.
local given, numbered, arrived = tonumber(counted[1]) or 0, tonumber(counted[2]) or 0, tonumber(counted[3]) or 0
local stamped = tonumber(counted[4]) or 0
local epoch = call('GET', K .. 'epoch') or ''
local quiet = tonumber(call('GET', K .. 'quiet')) or 0
local outbox, notified = {}, {}
local subscribed = {}

local function make_pool(name)
  return {
    name = name, k = K .. 'pool:' .. name .. ':', open = false, leaving = false,
    -- Slots of an account, of all, places in the queue, and slots of callers with their own tokens.
    per = 1, global = 0, queue = 0, direct = 1,
    -- Active and waiting requests, and those of callers with their own tokens among them.
    in_use = 0, waiting = 0, direct_in_use = 0, direct_waiting = 0,
    -- Disabled accounts.
    disabled = 0,
    -- When the window of the upstream's used-up budget ends; 0 while it has something left. The share of its accounts' windows that
    -- background requests leave to others.
    spent = 0, reserve = 0,
    -- How it chooses among accounts with a free slot, with the time and the sum of the weights.
    choose = 'rotate', at = '0', sum = 1,
    -- Whether requests that have another pool leave this one out, as in `poolQueue.ts`, and why (`cooling.lua`).
    skip = 'no', coolings = 0, in_row = 0, failures = 0, requests = 0, cause = ''
  }
end

-- All pools, and those that have left the configuration and still have leases. `total` bounds the slots in use of all.
local pools, by_name, total = {}, {}, tonumber(limits[2]) or 0
-- Whether accounts or upstreams have budgets.
local budgeted = limits[3] and true or false

for i, text in ipairs(call('HVALS', K .. 'pools')) do
  local p = cjson.decode(text)
  pools[i], by_name[p.name] = p, p
end
table.sort(pools, function(one, other) return one.order < other.order end)

-- An account of which nothing is known.
local NEW_ACCOUNT = {
  -- Its pool, of which it is a member while it is configured, and whether the operator has disabled it.
  pool = '', member = false, disabled = false,
  -- Its state apart from its budgets, and until when (`inf` while it is tried); when its used-up budget ends; until when its upstream wants no
  -- request, if that is later than the end of its cooling.
  state = 'ready', till = 0, spent = 0, stated = 0,
  -- Its leases. `cleaning` and `trying` are there while a node deletes its sessions or tries it; that node's `tasks:<node>` has its name.
  use = 0,
  -- The last fault with how many there were in a row, and the numbers of the last one and of the token. A fault has its delays, `first` and
  -- `longest`; `unclean` is there if sessions are to be deleted.
  fault = '', faults = 0, epoch = '0', token = '0', tested = '',
  -- The number of its last grant, its place among the accounts, and when its next grant may start (`choice.ts`).
  last = NEVER_GIVEN, order = 0, priority = 0, weight = 1, start = '0'
}

-- Stands for the pool of an account that no pool has.
local nowhere = make_pool('')

-- The records of waiters, by `<node>|<ticket>`: false for none. `touched` ones are saved at the end.
local records, touched = {}, {}
