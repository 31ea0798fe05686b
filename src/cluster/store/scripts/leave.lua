-- The node leaves: its leases and waiters are released immediately.
if not is_attached() then return { 'lost' } end
drop(me)
serve()
return finish({ 'ok' })
