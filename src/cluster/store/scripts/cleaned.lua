-- The deletion of an account's sessions is over, or is not waited for any longer: then the node that runs it gives it up.
reap()
if not is_attached() then return finish({ 'lost' }) end
set_cleaning(ARGV[4], nil)
serve()
broadcast('cleaned ' .. ARGV[4])
return finish({ 'ok' })
