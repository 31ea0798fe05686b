-- The deletion of an account's sessions is complete, or was abandoned after a timeout.
set_cleaning(pool_of(ARGV[4]), ARGV[4], nil)
serve()
tell('*', 'cleaned ' .. ARGV[4])
return finish({ 'ok' })
