/**
 * Lua that is prepended to a script with the flag `allow-key-locking`, so that a plain Redis refuses commands whose keys are
 * not all in KEYS, with Upstash's error. It is a single line, so that line numbers in error messages stay those of the
 * script, and it declares a single local variable, which shadows `redis`. COMMAND GETKEYS finds the keys among the arguments.
 */
export const lockedKeys: string = [
  "local redis=(function(redis)",
  "local declared={} for _,key in ipairs(KEYS) do declared[key]=true end",
  "local function refusal(...) local name=string.upper(tostring((...)))",
  "if name=='FLUSHALL' or name=='FLUSHDB' then",
  "return 'ERR '..name..\" is not allowed in Lua scripts when 'allow-key-locking' flag is set\" end",
  "local keys=redis.pcall('COMMAND','GETKEYS',...) if keys.err then return nil end",
  "for _,key in ipairs(keys) do if not declared[key] then",
  "return \"ERR Dynamic keys are not allowed in Lua scripts when 'allow-key-locking' flag is set.",
  'Key was: "..key end end end',
  "return setmetatable({",
  "call=function(...) local err=refusal(...) if err then error({err=err}) end return redis.call(...) end,",
  "pcall=function(...) local err=refusal(...) if err then return {err=err} end return redis.pcall(...) end",
  "},{__index=redis}) end)(redis) ",
].join(" ");
