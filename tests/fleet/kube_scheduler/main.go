// kube-scheduler's own client of extenders asks ours: what it filters and how it ranks, as one line of JSON.
//
//	extender URL POD NODE…
//
// POD is a pod as the API has it, in JSON. Each node is asked for twice, by name and whole.
package main

import (
	"encoding/json"
	"log"
	"os"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler"
	"k8s.io/kubernetes/pkg/scheduler/apis/config"
	"k8s.io/kubernetes/pkg/scheduler/framework"
)

type answer struct {
	Nodes                  []string
	Failed                 map[string]string
	FilterError, RankError string
	Scores                 map[string]int64
	Weight                 int64
}

func nodes(names []string) []fwk.NodeInfo {
	found := []fwk.NodeInfo{}
	for _, name := range names {
		node := framework.NewNodeInfo()
		node.SetNode(&v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}})
		found = append(found, node)
	}
	return found
}

func asked(url string, byName bool, pod *v1.Pod, names []string) answer {
	extender, err := scheduler.NewHTTPExtender(&config.Extender{
		URLPrefix: url, FilterVerb: "filter", PrioritizeVerb: "prioritize", Weight: 1, NodeCacheCapable: byName,
	})
	if err != nil {
		log.Fatal(err)
	}
	found := answer{Nodes: []string{}, Scores: map[string]int64{}}
	left, failed, _, err := extender.Filter(pod, nodes(names))
	if err != nil {
		found.FilterError = err.Error()
	}
	for _, node := range left {
		found.Nodes = append(found.Nodes, node.Node().Name)
	}
	found.Failed = failed
	scores, weight, err := extender.Prioritize(pod, nodes(names))
	if err != nil {
		found.RankError = err.Error()
		scores = nil
	}
	found.Weight = weight
	if scores != nil {
		for _, each := range *scores {
			found.Scores[each.Host] = each.Score
		}
	}
	return found
}

func main() {
	var pod v1.Pod
	if err := json.Unmarshal([]byte(os.Args[2]), &pod); err != nil {
		log.Fatal(err)
	}
	found := map[string]answer{}
	for name, byName := range map[string]bool{"by name": true, "whole": false} {
		found[name] = asked(os.Args[1], byName, &pod, os.Args[3:])
	}
	if err := json.NewEncoder(os.Stdout).Encode(found); err != nil {
		log.Fatal(err)
	}
}
