-- The node leaves: its leases and waiters are released at once.
if not is_attached() then return { 'lost' } end
drop(me)
serve()
return finish({ 'ok' })
