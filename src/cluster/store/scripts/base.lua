-- The first lines of every script.
local K = 'gw:{main}:'
local call = redis.call

local function int(number) return string.format('%.0f', number) end
