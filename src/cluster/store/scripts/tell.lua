-- Notifies every node, without guaranteed delivery.
broadcast(ARGV[4])
return { 'ok' }
