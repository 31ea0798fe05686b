-- What was seen of an account apart from a lease's end; a test's outcome too, where there is one.
reap()
if not is_attached() then return finish({ 'lost' }) end
local account, tested = ARGV[5], ARGV[4]
if tested ~= '' and is_member(account) then call('HSET', K .. 'health:' .. account, 'tested', tested) end
return finish(report_at(5))
