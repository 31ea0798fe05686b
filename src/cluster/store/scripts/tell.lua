-- Sends a line to nodes, without guaranteed delivery. Arguments: a node, `*` for all or nothing for all others, and the line. Returns the
-- nodes.
return tell(ARGV[4], ARGV[5])
