/* SPDX-License-Identifier: Apache-2.0 */
/* A key's hash says in which shelf it may lie, so nobody looks further, and what gives way lies under the same lock. */
#include "store.h"

#include "memory.h"
#include "sleep_lock.h"

#define SHELVES 128
#define PLACES 16
#define LOCKS 4 /* few, as memcached's item locks: helpers do meet */

struct entry {
	uint64_t used; /* the shelf's uses at that time; 0: free */
	uint32_t hash, key_bytes;
	uint8_t key[STORE_KEY_BYTES];
	struct value value;
};

struct shelf {
	uint64_t uses;
	struct entry entries[PLACES];
};

static struct shelf shelves[SHELVES];
static struct sleep_lock locks[LOCKS];

_Static_assert(SHELVES % LOCKS == 0, "a shelf has one lock");

/* FNV-1a. */
static uint32_t hash_of(struct text key)
{
	uint32_t hash = 2166136261;

	for (uint32_t i = 0; i < key.bytes; i++)
		hash = (hash ^ key.at[i]) * 16777619;
	return hash;
}

static struct shelf *lock_shelf(struct cpu *cpu, uint32_t hash)
{
	sleep_lock(cpu, &locks[hash % LOCKS]);
	return &shelves[hash % SHELVES];
}

static void unlock_shelf(struct cpu *cpu, uint32_t hash)
{
	sleep_unlock(cpu, &locks[hash % LOCKS]);
}

static struct entry *find(struct shelf *shelf, struct text key, uint32_t hash)
{
	for (struct entry *entry = shelf->entries; entry < shelf->entries + PLACES; entry++)
		if (entry->used && entry->hash == hash && entry->key_bytes == key.bytes &&
		    !memcmp(entry->key, key.at, key.bytes))
			return entry;
	return NULL;
}

/* A free place if there is one, else what was used longest ago gives way. */
static struct entry *place_for(struct shelf *shelf, struct text key, uint32_t hash)
{
	struct entry *oldest = find(shelf, key, hash);

	if (oldest)
		return oldest;
	oldest = shelf->entries;
	for (struct entry *entry = shelf->entries; entry < shelf->entries + PLACES; entry++)
		if (entry->used < oldest->used)
			oldest = entry;
	oldest->hash = hash;
	oldest->key_bytes = key.bytes;
	memcpy(oldest->key, key.at, key.bytes);
	return oldest;
}

bool store_get(struct cpu *cpu, struct text key, struct value *value)
{
	uint32_t hash = hash_of(key);
	struct shelf *shelf = lock_shelf(cpu, hash);
	struct entry *entry = find(shelf, key, hash);

	if (entry) {
		entry->used = ++shelf->uses;
		value->flags = entry->value.flags;
		value->bytes = entry->value.bytes;
		memcpy(value->data, entry->value.data, entry->value.bytes);
	}
	unlock_shelf(cpu, hash);
	return entry;
}

void store_set(struct cpu *cpu, struct text key, uint32_t flags, struct text data)
{
	uint32_t hash = hash_of(key);
	struct shelf *shelf = lock_shelf(cpu, hash);
	struct entry *entry = place_for(shelf, key, hash);

	entry->used = ++shelf->uses;
	entry->value.flags = flags;
	entry->value.bytes = data.bytes;
	memcpy(entry->value.data, data.at, data.bytes);
	unlock_shelf(cpu, hash);
}

bool store_delete(struct cpu *cpu, struct text key)
{
	uint32_t hash = hash_of(key);
	struct entry *entry = find(lock_shelf(cpu, hash), key, hash);

	if (entry)
		entry->used = 0;
	unlock_shelf(cpu, hash);
	return entry;
}
