// Lua that is prepended to a script so that a plain Redis runs it as Upstash does. It is a single line, so that line
// numbers in error messages stay those of the script, and it declares a single local variable, which shadows `redis`.

/** The features that a script needs and the server lacks. */
export interface Needs {
  /** The check of `allow-key-locking`: all keys must be declared in KEYS. */
  readonly lockedKeys: boolean;
  /** `DELEX`, and `SET` with `IFEQ` or `IFNE`. */
  readonly conditions: boolean;
}

/**
 * Refuses commands whose keys are not all in KEYS, with Upstash's error. COMMAND GETKEYS finds the keys among the
 * arguments, except for DELEX, which the server may not know: its key is the first argument.
 */
const lockedKeys = [
  "local declared={} for _,key in ipairs(KEYS) do declared[key]=true end",
  "local function refusal(...) local name=string.upper(tostring((...)))",
  "if name=='FLUSHALL' or name=='FLUSHDB' then",
  "return 'ERR '..name..\" is not allowed in Lua scripts when 'allow-key-locking' flag is set\" end",
  "local keys if name=='DELEX' then keys={(select(2,...))}",
  "else keys=redis.pcall('COMMAND','GETKEYS',...) if keys.err then return nil end end",
  "for _,key in ipairs(keys) do if not declared[key] then",
  "return \"ERR Dynamic keys are not allowed in Lua scripts when 'allow-key-locking' flag is set.",
  'Key was: "..key end end end',
].join(" ");

/**
 * Emulates `DELEX key [IFEQ|IFNE value]` and `SET key value … IFEQ|IFNE value …`, which are part of Redis since 8.4.
 * `emulated` takes a command and returns its reply, errors as tables; nil for a command that Redis has itself.
 *
 * A missing key is equal to no value: IFEQ leaves it missing, IFNE creates it. If the condition does not hold, SET is
 * still sent, with NX or XX so that it writes nothing: Redis then checks the other options. Every command beyond
 * one is followed by COMMAND COUNT, by which backend.ts knows not to bill it.
 */
const conditions = [
  "local function text(value) return type(value)=='number' and string.format('%.17g',value) or value end",
  "local function fail(message) return {err='ERR '..message} end",
  "local function free(reply) redis.pcall('COMMAND','COUNT') return reply end",
  "local function delex(words) if #words==2 then return redis.pcall('DEL',words[2]) end",
  "if #words~=4 then return fail(\"wrong number of arguments for 'delex' command\") end",
  "local mode=string.upper(words[3])",
  "if mode=='IFDEQ' or mode=='IFDNE' then return fail(digests) end",
  "if mode~='IFEQ' and mode~='IFNE' then return fail('syntax error') end",
  "local value=redis.pcall('GET',words[2]) if type(value)=='table' then",
  "return fail('Key should be of string type if conditions are specified') end",
  "if (value==words[4])~=(mode=='IFEQ') then return 0 end",
  "return free(redis.pcall('DEL',words[2])) end",
  "local function set(words) local mode,compared,get,exists local sent={'SET',words[2],words[3]}",
  "local position=4 while position<=#words do local word=string.upper(words[position]) position=position+1",
  "if word=='IFDEQ' or word=='IFDNE' then return fail(digests)",
  "elseif word=='IFEQ' or word=='IFNE' then",
  "if position>#words or (mode and mode~=word) then return fail('syntax error') end",
  "mode=word compared=words[position] position=position+1",
  "elseif word=='GET' then get=true",
  "else exists=exists or word=='NX' or word=='XX' sent[#sent+1]=word",
  // The argument of an expiry is a number, never an option.
  "if string.find(word,'^[EP]X$') or string.find(word,'^[EP]XAT$') then",
  "if position>#words then return fail('syntax error') end",
  "sent[#sent+1]=words[position] position=position+1 end end end",
  "if not mode then return nil end if exists then return fail('syntax error') end",
  "local value=redis.pcall('GET',words[2]) local wrong=type(value)=='table'",
  "if wrong or (value==compared)~=(mode=='IFEQ') then sent[#sent+1]=value and 'NX' or 'XX' end",
  "local done=free(redis.pcall(unpack(sent)))",
  "if type(done)=='table' and done.err then return done end",
  "if wrong or get then return value end return done end",
  "local function emulated(...) local name=string.upper(tostring((...)))",
  "local count=select('#',...) if name~='DELEX' and (name~='SET' or count<4) then return nil end",
  "if count<2 then return fail('Wrong number of args calling Redis command from script') end",
  "local words={} for position=1,count do local word=text((select(position,...)))",
  "if type(word)~='string' then return fail('Lua redis lib command arguments must be strings or integers') end",
  "words[position]=word end",
  "if name=='SET' then return set(words) end return delex(words) end",
].join(" ");

const digests = "local digests='IFDEQ and IFDNE need a Redis of 8.4 or later behind the local endpoint'";

/**
 * The prefix that gives a script the features in `needs`.
 *
 * @example
 * const sent = prefixOf({ lockedKeys: true, conditions: false }) + script;
 */
export function prefixOf(needs: Needs): string {
  const refused = needs.lockedKeys ? "local err=refusal(...) if err then return {err=err} end" : "";
  const answered = needs.conditions ? "local reply=emulated(...) if reply~=nil then return reply end" : "";
  return [
    "local redis=(function(redis)",
    ...(needs.lockedKeys ? [lockedKeys] : []),
    ...(needs.conditions ? [digests, conditions] : []),
    `local function intercept(...) ${refused} ${answered} return nil end`,
    "return setmetatable({",
    "call=function(...) local reply=intercept(...) if reply==nil then return redis.call(...) end",
    "if type(reply)=='table' and reply.err then error(reply) end return reply end,",
    "pcall=function(...) local reply=intercept(...) if reply==nil then return redis.pcall(...) end return reply end",
    "},{__index=redis}) end)(redis) ",
  ].join(" ");
}
