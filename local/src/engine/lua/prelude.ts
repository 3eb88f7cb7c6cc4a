/**
 * Lua code that turns the libraries of Lua 5.3 into those of 5.1 in Redis: it adds and removes functions. Runs once per
 * machine, before the globals are locked, and returns the tables to lock.
 *
 * Missing, although Redis has them: bit, cmsgpack, struct, load, string.dump.
 */
export const prelude: string = `
local G = _G
unpack = table.unpack

function table.getn(t) return #t end
function table.maxn(t)
  local most = 0
  for key in pairs(t) do
    if type(key) == "number" and key > most then most = key end
  end
  return most
end
function table.foreach(t, visit)
  for key, value in pairs(t) do
    local result = visit(key, value)
    if result ~= nil then return result end
  end
end
function table.foreachi(t, visit)
  for position = 1, #t do
    local result = visit(position, t[position])
    if result ~= nil then return result end
  end
end

function math.pow(x, y) return x ^ y end
function math.log10(x) return math.log(x, 10) end
function math.mod(x, y) return math.fmod(x, y) end
function math.cosh(x) return (math.exp(x) + math.exp(-x)) / 2 end
function math.sinh(x) return (math.exp(x) - math.exp(-x)) / 2 end
function math.tanh(x) return math.sinh(x) / math.cosh(x) end
function math.atan2(y, x) return math.atan(y, x) end
function math.ldexp(m, e) return m * 2 ^ e end
function math.frexp(x)
  if x == 0 or x ~= x or x == 1 / 0 or x == -1 / 0 then return x, 0 end
  local exponent = math.floor(math.log(math.abs(x), 2)) + 1
  local mantissa = x / 2 ^ exponent
  if math.abs(mantissa) >= 1 then return mantissa / 2, exponent + 1 end
  if math.abs(mantissa) < 0.5 then return mantissa * 2, exponent - 1 end
  return mantissa, exponent
end
string.gfind = string.gmatch

local function keep(t, names)
  local wanted = {}
  for name in string.gmatch(names, "%S+") do wanted[name] = true end
  local surplus = {}
  for name in pairs(t) do
    if not wanted[name] then surplus[#surplus + 1] = name end
  end
  for _, name in ipairs(surplus) do t[name] = nil end
  return t
end

keep(string, "byte char find format gfind gmatch gsub len lower match rep reverse sub upper")
keep(table, "concat foreach foreachi getn insert maxn remove sort")
keep(math, "abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp log log10 max min mod modf pi pow rad random randomseed sin sinh sqrt tan tanh")
keep(coroutine, "create resume running status wrap yield")
_VERSION = "Lua 5.1"
setmetatable(G, {__index = missing_global})
local locked = {string, table, math, coroutine, redis, cjson, getmetatable(G), getmetatable("")}
keep(G, "ARGV KEYS _G _VERSION assert cjson collectgarbage coroutine error getmetatable ipairs loadstring math next pairs pcall rawequal rawget rawset redis select setmetatable string table tonumber tostring type unpack xpcall")
return G, G.unpack(locked)
`;
