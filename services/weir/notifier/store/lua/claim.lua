-- Claims the push of a token that is due.
-- KEYS 1 token
-- ARGV 1 claim, 2 its milliseconds, 3 '1' on a retry
-- Answers 0: no push is due or another claim holds, or the push (include/push.lua). A retry that finds its claim answers the push.
-- include: push
-- include: works_when_full
local t = KEYS[1]
local r = push_state(t)
if not due_kind(r) then return 0 end
if r[CLAIM] == ARGV[1] then return answer_push(t, r, ARGV[1]) end
if r[CLAIM] then return 0 end
return claim_push(t, r, ARGV[1], ARGV[2])
