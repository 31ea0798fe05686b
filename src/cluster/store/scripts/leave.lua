-- The node goes: all that it has is free at once.
if not is_attached() then return { 'lost' } end
drop(me)
serve()
return finish({ 'ok' })
