-- The first lines of the scripts of attached nodes.
reap()
if not is_attached() then return finish({ 'lost' }) end
