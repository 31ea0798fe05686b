-- Changes a claim. Operations:
--   widen ticket        ends its hold at the first pool: it waits at the others too
--   drop ticket pool    gives up its place in a pool, whose upstream no longer has the model
--   works ticket        the upstream of its lease has sent the first event; the reply is `back` if that ends a cooling
--   answered ticket continued lifetime keys
--                       the account of its lease answers a sticky conversation, which prefers it for so many milliseconds from now on; the
--                       reply is `hit` or `move` if the conversation is a continued one (1) that an account is known of
-- The first two reply as `acquire` does; `gone` without a lease or a place.
local op, ticket = ARGV[4], ARGV[5]
if op == 'works' then
  local p = lease_of(me, ticket)
  local was_cooled = p and not p.leaving and upstream_succeeded(p)
  return finish({ was_cooled and 'back' or 'ok' })
end
if op == 'answered' then
  local p, lease = lease_of(me, ticket)
  local met, account = '', p and lease.account or ''
  if account ~= '' then
    local _, _, last = sticky_of(ARGV[8])
    if ARGV[6] == '1' and last then met = last == account and 'hit' or 'move' end
    keep_conversation('sticky', string.match(ARGV[8], '^%S+'), int(now + tonumber(ARGV[7])) .. ' ' .. p.name .. ' ' .. account)
  end
  return finish({ met })
end
local record = record_of(me, ticket)
if record then
  local p = configured(ARGV[6])
  local target = p and target_at(record, p)
  if op == 'widen' then
    widen(record)
  elseif target and is_place(target) then
    give_up(record, target, { reason = 'Unavailable' })
  elseif target then
    target.state = 'gone'
    touch(record)
  end
  serve()
end
return finish(claim_of(ticket) or { 'gone' })
