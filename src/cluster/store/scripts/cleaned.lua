-- The deletion of an account's sessions is complete, or was abandoned after a timeout.
reap()
if not is_attached() then return finish({ 'lost' }) end
set_cleaning(pool_of(ARGV[4]), ARGV[4], nil)
serve()
broadcast('cleaned ' .. ARGV[4])
return finish({ 'ok' })
