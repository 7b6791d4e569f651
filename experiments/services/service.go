// SPDX-License-Identifier: Apache-2.0

// A web service as many are: it looks entries up in memory, groups and sorts them, and answers JSON. Every
// request allocates, so the garbage collector works beside the requests, and what it marks is the entries.
//
//	dasec-go ADDRESS:PORT THREADS ENTRIES PICKED
package main

import (
	"encoding/json"
	"fmt"
	"log"
	"math/rand"
	"net/http"
	"os"
	"runtime"
	"sort"
	"strconv"
)

const groups = 8

// An entry is made of pointers, as most of what services keep is: each of them is work for the collector.
type entry struct {
	Name  string   `json:"name"`
	Group string   `json:"group"`
	Price int      `json:"price"`
	Words []string `json:"words"`
}

type service struct {
	entries map[int]*entry
	picked  int
}

func newService(entries, picked int) *service {
	// The same entries each time.
	chance := rand.New(rand.NewSource(1))
	made := make(map[int]*entry, entries)
	for number := 0; number < entries; number++ {
		words := make([]string, 4)
		for index := range words {
			words[index] = fmt.Sprintf("word-%06d", chance.Intn(1000000))
		}
		made[number] = &entry{
			Name:  fmt.Sprintf("entry-%06d", number),
			Group: fmt.Sprintf("group-%d", chance.Intn(groups)),
			Price: chance.Intn(100000),
			Words: words,
		}
	}
	return &service{made, picked}
}

// The entries of this key by group, the cheapest first.
func (s *service) grouped(key int) map[string][]*entry {
	chance := rand.New(rand.NewSource(int64(key)))
	found := make(map[string][]*entry)
	for count := 0; count < s.picked; count++ {
		one := s.entries[chance.Intn(len(s.entries))]
		found[one.Group] = append(found[one.Group], one)
	}
	for _, group := range found {
		group := group
		sort.Slice(group, func(i, j int) bool { return group[i].Price < group[j].Price })
	}
	return found
}

func (s *service) ServeHTTP(answer http.ResponseWriter, request *http.Request) {
	key, err := strconv.Atoi(request.URL.Path[1:])
	if err != nil {
		http.NotFound(answer, request)
		return
	}
	body, err := json.Marshal(s.grouped(key))
	if err != nil {
		http.Error(answer, err.Error(), http.StatusInternalServerError)
		return
	}
	answer.Header().Set("Content-Length", strconv.Itoa(len(body)))
	// Who asked has gone if this fails.
	_, _ = answer.Write(body)
}

func number(text string) int {
	value, err := strconv.Atoi(text)
	if err != nil || value < 1 {
		log.Fatalf("dasec-go: must be a whole number from 1 on, got '%s'", text)
	}
	return value
}

func main() {
	if len(os.Args) != 5 {
		log.Fatal("dasec-go: usage: dasec-go ADDRESS:PORT THREADS ENTRIES PICKED")
	}
	runtime.GOMAXPROCS(number(os.Args[2]))
	log.Fatal(http.ListenAndServe(os.Args[1], newService(number(os.Args[3]), number(os.Args[4]))))
}
